"""Many wide counters in one memory."""

from amaranth.hdl import Array, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from .component import Component
from .config import SramKind
from .emission import shared_instance
from .sram import Sram

__all__ = ["COUNTER_BITS", "CounterBank"]

#: Width of a counter; at 1.25 GHz it wraps after three hours.
COUNTER_BITS = 44


class CounterBank(Component):
    """Counters of :data:`COUNTER_BITS` bits in one memory.

    In flip-flops, sixteen of them would be an eighth of an engine. Instead, narrow counters collect
    the events, and each is added to its memory word once every ``depth`` cycles.

    Parameters:
        max_steps: of each counter, the largest step (0: it stays 0); 2..256 counters.
        kind: implementation of the memory.

    Members:
        step_N (in, 0..``max_steps[N]``): step of counter ``N`` in this cycle; for each counter with
            steps.
        clear (in, 1): all counters start again from 0 after the last cycle with ``clear``. Reset
            clears them, too.
        index (in, log2 of ``depth``): counter to read.
        value (out, COUNTER_BITS): one cycle after ``index``; exact ``lag`` cycles after the last
            step or clear.

    Attributes:
        depth: words of the memory, a power of two.
        lag: cycles, ``depth + 2``.
    """

    def __init__(self, *, max_steps: tuple[int, ...], kind: SramKind) -> None:
        self.max_steps = max_steps
        self.kind = kind
        self._index_bits = (len(max_steps) - 1).bit_length()
        self.depth = 1 << self._index_bits
        self.lag = self.depth + 2
        super().__init__(
            {
                **{
                    f"step_{number}": In(range(largest + 1))
                    for number, largest in enumerate(max_steps)
                    if largest
                },
                "clear": In(1),
                "index": In(self._index_bits),
                "value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        memory = Sram(
            width=COUNTER_BITS, depth=self.depth, read_ports=2, write_ports=1, kind=self.kind
        )
        m.submodules.memory = shared_instance(memory, platform)
        update, readout = memory.read
        (write,) = memory.write
        m.d.comb += [
            readout.enable.eq(1),
            readout.address.eq(self.index),
            self.value.eq(readout.data),
        ]
        turn = Signal(self._index_bits)
        adding = Signal(self._index_bits)
        # The first round overwrites the memory, so clearing takes no extra time.
        first_round = Signal(init=1)
        starting = Signal(init=1)
        m.d.sync += [turn.eq(turn + 1), adding.eq(turn), starting.eq(0)]
        with m.If(~starting & (adding == self.depth - 1)):
            m.d.sync += first_round.eq(0)
        m.d.comb += [update.enable.eq(1), update.address.eq(turn)]

        gathered: list[Value] = []
        for number in range(self.depth):
            largest = self.max_steps[number] if number < len(self.max_steps) else 0
            if not largest:
                gathered.append(Const(0, 1))
                continue
            narrow = Signal(range(self.depth * largest + 1), name=f"gathered_{number}")
            # Held until its first turn, or it would be lost.
            added = ~starting & (adding == number)
            m.d.sync += narrow.eq(Mux(added, 0, narrow) + getattr(self, f"step_{number}"))
            gathered.append(narrow)
        m.d.comb += [
            write.enable.eq(~starting),
            write.address.eq(adding),
            write.data.eq(Mux(first_round, 0, update.data) + Array(gathered)[adding]),
        ]
        with m.If(self.clear):
            m.d.sync += [turn.eq(0), first_round.eq(1), starting.eq(1)]
            m.d.sync += [value.eq(0) for value in gathered if isinstance(value, Signal)]
        return m
