"""A counter of clocks until a command is allowed."""

from amaranth.hdl import Module, Signal


class CountDown:
    """Delays a command by a number of clocks.

    After ``wait(n)`` in cycle t, :attr:`done` is 0 in cycles t + 1 .. t + n - 1 and 1 from t + n.
    Of overlapping waits the longest counts.

    Parameters:
        m: module that the counter becomes part of, in domain ``sync``.
        longest: largest wait, in clocks.
        name: of its signal.

    Attributes:
        done: 1 while no wait runs.
    """

    def __init__(self, m: Module, longest: int, name: str) -> None:
        self._m = m
        self._left = Signal(range(max(longest, 2)), name=name)
        self.done = Signal(name=f"{name}_done")
        m.d.comb += self.done.eq(self._left == 0)
        with m.If(~self.done):
            m.d.sync += self._left.eq(self._left - 1)

    def wait(self, clocks: int) -> None:
        """Wait for ``clocks`` from this cycle on, unless a longer wait runs.

        The call belongs in the branch of the module in which the wait begins. Of two calls that
        wait in one cycle the last counts. A wait of less than two clocks changes nothing.
        """
        if clocks < 2:
            return
        with self._m.If(self._left <= clocks):
            self._m.d.sync += self._left.eq(clocks - 1)
