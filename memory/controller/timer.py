"""A counter of clocks until something is allowed."""

from amaranth.hdl import Module, Signal

__all__ = ["CountDown"]


class CountDown:
    """Holds something up for a number of clocks.

    After ``wait(n)`` in cycle t, :attr:`done` is 0 in cycles t + 1 .. t + n - 1 and 1 from t + n.
    Waits add up to the longest of them.

    Parameters:
        m: module that the counter becomes part of, in domain ``sync``.
        longest: largest wait that will be asked for, in clocks.
        name: of its signal.

    Attributes:
        done: 1 while nothing holds.
    """

    def __init__(self, m: Module, longest: int, name: str) -> None:
        self._m = m
        self._left = Signal(range(max(longest, 2)), name=name)
        self.done = Signal(name=f"{name}_done")
        m.d.comb += self.done.eq(self._left == 0)
        with m.If(~self.done):
            m.d.sync += self._left.eq(self._left - 1)

    def wait(self, clocks: int) -> None:
        """Hold for ``clocks`` from this cycle on, unless a longer wait is running.

        To be called in the branch of the module in which the wait begins. Of two calls that hold in
        one cycle the last counts.
        A wait of less than two clocks changes nothing.
        """
        if clocks < 2:
            return
        with self._m.If(self._left <= clocks):
            self._m.d.sync += self._left.eq(clocks - 1)
