"""The beats of a burst of the host, by the formulas of AXI."""

from typing import Any

from amaranth.hdl import Cat, Mux, Signal, Value
from amaranth.lib import data

from hdl.axi import AxiBurst, AxiResponse
from pe.config import PeConfig
from soc.host.burst import BurstWalker
from soc.host.config import HostConfig

from .proof import Watch

#: A host of two small vaults.
HOST = HostConfig(
    pe=PeConfig(address_bits=13),
    columns=2,
    rows=1,
    pes=1,
    vault_address_bits=12,
    tag_bits=2,
    id_bits=1,
)


def burst_walker(dut: BurstWalker, watch: Watch) -> None:
    """Each beat of a burst, which may be any that AXI has, comes once, with its column and word;
    the bursts of a run are alike."""
    m, beat = watch.m, dut.beat.payload
    burst = data.View(dut.burst.payload.shape(), watch.any_constant(dut.burst.payload.shape().size))
    watch.assume(~dut.burst.valid | (~watch.first & (dut.burst.payload == burst)))
    number, span = Signal(9), Signal(12)
    with m.If(dut.beat.valid & dut.beat.ready):
        m.d.sync += number.eq(Mux(beat.last, 0, number + 1))
    m.d.comb += span.eq(((burst.length + 1) << burst.size[:2]) - 1)
    start, kind = burst.address, burst.burst
    aligned = start >> burst.size[:2] << burst.size[:2]

    def place(number: Any) -> Value:
        """Address of a beat of a burst."""
        found, after = Signal(48), Signal(48)
        m.d.comb += [
            after.eq(aligned + (number << burst.size[:2])),
            found.eq(Mux((number == 0) | (kind == AxiBurst.FIXED.value), start, after)),
        ]
        with m.If(kind == AxiBurst.WRAP.value):
            m.d.comb += found.eq(start - (start & span) + (after & span))
        return found

    here, following, end = place(number), place(number + 1), place(burst.length)
    whole = Cat(burst.length == length for length in (1, 3, 7, 15)).any() & (start == aligned)
    legal = Mux(kind == AxiBurst.WRAP.value, whole, start[12:] == end[12:])
    legal &= (burst.size <= 3) & (kind != 3)
    outside = start >= dut.config.memory_bytes
    right = Mux(legal, AxiResponse.OKAY.value, AxiResponse.SLVERR.value)
    answer = Mux(outside, AxiResponse.DECERR.value, right)
    wrong = [
        beat.id != burst.id,
        beat.last != (number == burst.length),
        Value.cast(beat.response) != answer,
    ]
    where = [
        beat.column != here[5:],
        beat.word != here[3:5],
        beat.closes != (beat.last | (here[5:] != following[5:])),
    ]
    okay = legal & ~outside
    watch.never(dut.beat.valid & (Cat(wrong).any() | (okay & Cat(where).any())))


WALKER_BUGS = (
    ("narrow.eq((1 << burst.size) - 1)", "narrow.eq(1 << burst.size)"),
    ("(offset & ~span) | (stepped & span)", "stepped"),
    ("done.eq(Mux(beat.last, 0, done + 1))", "done.eq(done + 1)"),
    ("(following[COLUMN_ADDRESS_BITS:] != offset[COLUMN_ADDRESS_BITS:])", "0"),
    ("end[_PAGE_BITS])", "end[_PAGE_BITS - 1])"),
)
