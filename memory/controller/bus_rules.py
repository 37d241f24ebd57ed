"""Timing rules across banks: the data bus, and ACT to ACT if set."""

from amaranth.hdl import Elaboratable, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from memory.config import VaultConfig
from memory.timing import BURST_CLOCKS, DramTiming

from .timer import CountDown

#: ACTs that tFAW counts.
_WINDOW = 4


def read_to_write(timing: DramTiming) -> int:
    """Clocks from READ to WRITE of any banks, so that their bursts keep apart."""
    return timing.tcl + BURST_CLOCKS + timing.turnaround_clocks - timing.tcwl


def write_to_read(timing: DramTiming) -> int:
    """Clocks from WRITE to READ of any banks, so that their bursts keep apart."""
    return timing.tcwl + BURST_CLOCKS + timing.turnaround_clocks - timing.tcl


class BusRules(Component):
    """Keeps the timing rules across banks: follows the issued commands and reports the legal kinds.

    Bursts move in the order of their commands.

    Members:
        read (in, 1): a READ is issued in this cycle.
        write (in, 1): a WRITE is issued.
        activate (in, 1): an ACT is issued.
        read_allowed (out, 1): a READ is legal in this cycle.
        write_allowed (out, 1): a WRITE is legal.
        activate_allowed (out, 1): an ACT is legal.
        turnaround (out, 1): this burst has another direction than the previous one.
        busy (out, 1): a burst begins or continues (four cycles from its command).
    """

    def __init__(self, config: VaultConfig) -> None:
        self.config = config
        super().__init__(
            {
                "read": In(1),
                "write": In(1),
                "activate": In(1),
                "read_allowed": Out(1),
                "write_allowed": Out(1),
                "activate_allowed": Out(1),
                "turnaround": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        timing = self.config.timing
        turnaround_to_read = max(1, write_to_read(timing))
        turnaround_to_write = max(1, read_to_write(timing))
        reads = CountDown(m, max(BURST_CLOCKS, turnaround_to_read), "reads")
        writes = CountDown(m, max(BURST_CLOCKS, turnaround_to_write), "writes")
        burst = CountDown(m, BURST_CLOCKS, "burst")
        writing = Signal()
        with m.If(self.read):
            reads.wait(BURST_CLOCKS)
            writes.wait(turnaround_to_write)
            burst.wait(BURST_CLOCKS)
            m.d.sync += writing.eq(0)
        with m.Elif(self.write):
            reads.wait(turnaround_to_read)
            writes.wait(BURST_CLOCKS)
            burst.wait(BURST_CLOCKS)
            m.d.sync += writing.eq(1)
        m.d.comb += [
            self.read_allowed.eq(reads.done),
            self.write_allowed.eq(writes.done),
            self.turnaround.eq((self.read & writing) | (self.write & ~writing)),
            self.busy.eq(self.read | self.write | ~burst.done),
        ]
        self._activates(m, timing)
        return m

    def _activates(self, m: Module, timing: DramTiming) -> None:
        allowed: list[Value] = []
        if timing.trrd > 1:
            distance = CountDown(m, timing.trrd, "distance")
            with m.If(self.activate):
                distance.wait(timing.trrd)
            allowed.append(distance.done)
        if timing.tfaw > _WINDOW:
            # Four timers, one per ACT of four in a row.
            oldest = Signal(range(_WINDOW))
            with m.If(self.activate):
                m.d.sync += oldest.eq(oldest + 1)
            for number in range(_WINDOW):
                timer = CountDown(m, timing.tfaw, f"window_{number}")
                with m.If(self.activate & (oldest == number)):
                    timer.wait(timing.tfaw)
                allowed.append(timer.done | (oldest != number))
        m.d.comb += self.activate_allowed.eq(1)
        for condition in allowed:
            with m.If(~condition):
                m.d.comb += self.activate_allowed.eq(0)
