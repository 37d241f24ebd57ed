"""Many wide counters in one memory."""

from typing import Any

from amaranth.hdl import Array, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from .component import Component
from .config import SramKind
from .emission import shared_instance
from .sram import Sram

#: Width of a counter; at 1.25 GHz it wraps after three hours.
COUNTER_BITS = 44


class CounterBank(Component):
    """Counters of :data:`COUNTER_BITS` bits in one memory.

    In flip-flops, sixteen of them would be an eighth of an engine. Instead, narrow counters collect
    the events, and each is added to its memory word in its turn, once every ``depth`` cycles; if
    not all need to be exact, only when ``depth`` / 2 events have come since.

    Parameters:
        max_steps: of each counter, the largest step (0: it stays 0); 2..256 counters.
        kind: implementation of the memory.

    Members:
        step_N (in, 0..``max_steps[N]``): step of counter ``N`` in this cycle; for each counter with
            steps.
        settle (in, 1): every counter is added in its turn, not only those that have gathered much.
        clear (in, 1): all counters start again from 0 after the last cycle with ``clear``. Reset
            clears them, too.
        index (in, log2 of ``depth``): counter to read.
        value (out, COUNTER_BITS): one cycle after ``index``; exact ``lag`` cycles after the last
            step or clear, if ``settle`` has been 1 from the cycle of that step on.

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
                "settle": In(1, init=1),  # type: ignore[call-arg]
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
        turn = Signal(self._index_bits)
        adding = Signal(self._index_bits)
        adds = Signal()
        # The first round overwrites the memory, so clearing takes no extra time.
        first_round = Signal(init=1)
        starting = Signal(init=1)
        m.d.sync += [turn.eq(turn + 1), adding.eq(turn), starting.eq(0)]
        with m.If(~starting & (adding == self.depth - 1)):
            m.d.sync += first_round.eq(0)
        gathered: list[Value] = []
        much: list[Value] = []
        for number in range(self.depth):
            largest = self.max_steps[number] if number < len(self.max_steps) else 0
            if not largest:
                gathered.append(Const(0, 1))
                much.append(Const(0, 1))
                continue
            # What may stay, and the steps up to the end of the turn after.
            narrow = Signal(range((3 * self.depth // 2 + 1) * largest), name=f"gathered_{number}")
            step = getattr(self, f"step_{number}")
            added = Signal(name=f"added_{number}")
            # Held until its first turn, or it would be lost.
            m.d.comb += added.eq(adds & (adding == number))
            # Without clock gates, multiplexers are worth it only where steps are rare and wide.
            with m.If(added | step.any() if largest > 1 or self.kind == "macro" else 1):
                m.d.sync += narrow.eq(Mux(added, 0, narrow) + step)
            gathered.append(narrow)
            much.append(narrow[(self.depth * largest // 2).bit_length() - 1 :].any())
        asked = Signal()
        m.d.comb += asked.eq(self.settle | first_round | Array(much)[turn])
        m.d.sync += adds.eq(asked)
        m.d.comb += [
            update.enable.eq(asked),
            update.address.eq(turn),
            write.enable.eq(adds & ~starting),
            write.address.eq(adding),
            write.data.eq(Mux(first_round, 0, update.data) + Array(gathered)[adding]),
        ]
        self._read_out(m, readout, write)
        with m.If(self.clear):
            m.d.sync += [turn.eq(0), first_round.eq(1), starting.eq(1)]
            m.d.sync += [value.eq(0) for value in gathered if isinstance(value, Signal)]
        return m

    def _read_out(self, m: Module, readout: Any, write: Any) -> None:
        """Read the word at ``index`` when there is another one, there or in it."""
        index = Signal(self._index_bits, name="index_read")
        written = Signal(name="index_written", init=1)
        m.d.sync += [
            index.eq(self.index),
            written.eq(write.enable & (write.address == self.index)),
        ]
        m.d.comb += [
            readout.enable.eq(written | (index != self.index)),
            readout.address.eq(self.index),
            self.value.eq(readout.data),
        ]
