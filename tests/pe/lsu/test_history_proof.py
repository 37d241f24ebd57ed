"""What the table of the load history finds is in the scratchpad: shown for any inputs, some cycles.

An entry is recorded in one cycle, overwritten in another, looked for in a third and found in a
fourth; two more lie between.
"""

import pytest
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Elaboratable, Module, Mux, Signal

from hdl.yosys import run_yosys
from isa.timing import RANGE_BYTES
from pe.config import PeConfig
from pe.lsu.history_table import HistoryTable
from synth.formal.solve import run_abc

#: Cycles that are searched, the one before the first input included.
_CYCLES = 6
_UNIT_SHIFT = (RANGE_BYTES - 1).bit_length()


class _Watched(Elaboratable):
    """A table with any inputs, and what any byte of any column has to do with any byte of the
    scratchpad.

    ``bad`` is 1 where the table says that the one lies in the other, and it was not recorded, or an
    instruction that writes there was dispatched since, or is now.
    """

    def __init__(self, config: PeConfig) -> None:
        self.table = HistoryTable(config)
        self.bad = Signal()
        self.domain = ClockDomain("sync", reset_less=True)
        names = ("probe", "wanted", "wanted_first", "wanted_last", "record", "column", "place")
        names += ("first", "last", "renew", "way", "overwrites", "first_unit", "end_unit", "empty")
        self.given = {name: Signal.like(getattr(self.table, name), name=name) for name in names}
        table = self.table
        self.byte = Signal.like(table.first, name="byte")
        self.address = Signal.like(table.place, name="address")
        self.of_column = Signal.like(table.column, name="of_column")

    @property
    def ports(self) -> list[Signal]:
        return [
            self.domain.clk,
            *self.given.values(),
            self.byte,
            self.address,
            self.of_column,
            self.bad,
        ]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += self.domain
        m.submodules.table = table = self.table
        # The bytes are chosen once, before anything happens.
        started = Signal()
        chosen = {
            name: Signal.like(getattr(self, name), name=f"chosen_{name}")
            for name in ("byte", "address", "of_column")
        }
        m.d.sync += started.eq(1)
        with m.If(~started):
            m.d.sync += [signal.eq(getattr(self, name)) for name, signal in chosen.items()]
        byte, address, column = chosen.values()
        answers = Signal()
        m.d.sync += answers.eq(table.probe)
        for name, signal in self.given.items():
            # What is looked for stays until the answer.
            value = signal
            if name.startswith("wanted"):
                before = Signal.like(signal, name=f"before_{name}")
                m.d.sync += before.eq(getattr(table, name))
                value = Mux(answers, before, signal)
            elif name in ("probe", "record"):
                value = signal & started
            m.d.comb += getattr(table, name).eq(value)
        unit = address[_UNIT_SHIFT:]
        place = Signal.like(address, name="place_of_byte")
        written, covers, same = Signal(), Signal(), Signal()
        holds, sound = Signal(), Signal(init=1)
        m.d.comb += [
            written.eq(table.overwrites & (table.first_unit <= unit) & (unit < table.end_unit)),
            # Which byte of the recorded column would lie at the address.
            place.eq(address - table.place),
            covers.eq(table.record & (table.first <= place) & (place <= table.last)),
            same.eq((table.column == column) & (place == byte)),
        ]
        with m.If(covers):
            m.d.sync += holds.eq(same)
        with m.Elif(written):
            m.d.sync += holds.eq(0)
        # The ARC: nothing writes where a load arrives, and a load writes where it was announced.
        # A load does not leave the scratchpad.
        ends = [(table.place + at)[: len(address)] for at in (table.first, table.last)]
        with m.If(table.record & ((table.first > table.last) | (ends[0] > ends[1]))):
            m.d.sync += sound.eq(0)
        with m.If(covers & (written | (holds & ~same))):
            m.d.sync += sound.eq(0)
        m.d.comb += self.bad.eq(
            sound
            & answers
            & table.found
            & ~table.stale
            & (table.wanted == column)
            & (table.wanted_first <= byte)
            & (byte <= table.wanted_last)
            & ((table.found_place + byte)[: len(address)] == address)
            & (~holds | written)
        )
        return m


def _check(watched: _Watched, folder) -> str:
    """What ABC says of the first cycles."""
    (folder / "watched.il").write_text(rtlil.convert(watched, ports=watched.ports))
    commands = [
        "read_rtlil watched.il",
        "prep -flatten -top top",
        "memory_map",
        "opt -full",
        "techmap",
        "dfflegalize -cell $_DFF_P_ 01",
        "setundef -zero -init",
        "opt_clean",
        "aigmap",
        "write_aiger -zinit watched.aig",
    ]
    run_yosys(commands, what="the load history", folder=folder)
    return run_abc(folder, f"read_aiger watched.aig; drw; bmc3 -F {_CYCLES}")


@pytest.mark.parametrize("ways", [1, 2, pytest.param(0, marks=pytest.mark.slow)])
def test_what_is_found_is_in_the_scratchpad(ways: int, tmp_path) -> None:
    config = PeConfig(
        instructions=frozenset({"halt", "set.ws", "ld.sram[8]"}),
        scratchpad_bytes=64,
        address_bits=12,
        load_history=8,
        load_history_ways=ways,
    )
    assert f"No output asserted in {_CYCLES} frames" in _check(_Watched(config), tmp_path)
