"""What the table of the load history finds is in the scratchpad: proved for all inputs and times.

An invariant of the table says so of each entry, for one byte of a column and one byte of the
scratchpad, which may be any: an entry in use that would place the one at the other was recorded so,
nothing was dispatched since that writes there, and the entry's units include it. In the cycle after
a look, what was read is what the set holds, unless the set has changed. ABC finds that each cycle
keeps the invariant, and that it allows no wrong find.
"""

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Array, Cat, ClockDomain, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data

from hdl.yosys import run_yosys
from isa.limits import RANGE_BYTES
from pe.config import PeConfig
from pe.lsu.history_table import HistoryTable
from synth.formal.solve import run_abc
from tests.formal.proof import TO_AIGER

_UNIT_SHIFT = (RANGE_BYTES - 1).bit_length()


class _Watched(Elaboratable):
    """A table with any inputs, and what any byte of any column has to do with any byte of the
    scratchpad.

    ``bad`` is 1 where the table says that the one lies in the other, and it was not recorded, or an
    instruction that writes there was dispatched since, or is now; or where the invariant does not
    hold, which ``seen``, the table's state, is for. ``late``: the table is told of units
    from the second one on that an instruction writes, so that it must be wrong.
    """

    def __init__(self, config: PeConfig, *, late: bool = False) -> None:
        self.late = late
        self.table = HistoryTable(config)
        self.seen = _Seen(config, self.table)
        self.bad = Signal()
        self.domain = ClockDomain("sync", reset_less=True)
        names = ("probe", "probed_column", "probed_first", "probed_last", "record", "column")
        names += ("place", "first", "last", "renew", "way", "overwrites", "first_unit", "end_unit")
        names += ("empty",)
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
            *(signal for signal, _ in self.seen.names),
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
            if name.startswith("probed_"):
                before = Signal.like(signal, name=f"before_{name}")
                m.d.sync += before.eq(getattr(table, name))
                value = Mux(answers, before, signal)
            elif name in ("probe", "record"):
                value = signal & started
            elif name == "first_unit" and self.late:
                value = signal + 1
            m.d.comb += getattr(table, name).eq(value)
        unit = address[_UNIT_SHIFT:]
        place = Signal.like(address, name="place_of_byte")
        written, covers, same = Signal(), Signal(), Signal()
        holds, sound = Signal(), Signal(init=1)
        m.d.comb += [
            written.eq(
                table.overwrites & (self.given["first_unit"] <= unit) & (unit < table.end_unit)
            ),
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
        wrong = Signal()
        m.d.comb += wrong.eq(
            answers
            & table.hit
            & ~table.stale
            & (table.probed_column == column)
            & (table.probed_first <= byte)
            & (byte <= table.probed_last)
            & ((table.hit_place + byte)[: len(address)] == address)
            & (~holds | written)
        )
        kept = self._invariant(started, answers, holds, **chosen)
        m.d.comb += self.bad.eq(sound & (wrong | ~kept))
        return m

    def _invariant(
        self, started: Signal, answers: Signal, holds: Signal, byte: Signal, address: Signal,
        of_column: Signal,
    ) -> Value:  # fmt: skip
        table, seen = self.table, self.seen
        unit_of_byte = address[_UNIT_SHIFT:]
        kept = [started | ~Cat(seen.valid).any(), started | ~answers]
        for number, ways in enumerate(seen.entries):
            for way, entry in enumerate(ways):
                placed = (
                    seen.valid[number][way]
                    & (table._hash(of_column) == number if len(seen.entries) > 1 else 1)
                    & (entry.tag == table._tag(of_column))
                    & (entry.first <= byte)
                    & (byte <= entry.last)
                    & ((entry.place + byte)[: len(address)] == address)
                )
                unit, more = seen.units[number][way], seen.more[number][way]
                within = (unit <= unit_of_byte) & (unit_of_byte <= unit + more) & (more <= 2)
                kept.append(~placed | (holds & within))
        for way, read in enumerate(seen.reads):
            rows = Array(ways[way].as_value() for ways in seen.entries)
            kept.append(~answers | seen.changed | (read == rows[table._hash(table.probed_column)]))
        return Cat(kept).all()


class _Seen:
    """State of a table, which inputs stand for until they are connected to it.

    Attributes:
        names: inputs, and signals of the table.
        valid: of each set. entries, units, more: of each set and way. reads: what was read of each
            way, where there are sets. changed: in the cycle of a look, the set has changed.
    """

    def __init__(self, config: PeConfig, table: HistoryTable) -> None:
        sets = config.history_sets
        ways = config.load_history // sets
        layout = table._layout()
        bits = len(table.first_unit)
        self.names: list[tuple[Signal, str]] = []
        self.valid = [self._signal(ways, f"valid_{number}") for number in range(sets)]
        each = [(number, range(ways)) for number in range(sets)]
        self.units = [
            [self._signal(bits, f"unit_{n}_{way}") for way in numbers] for n, numbers in each
        ]
        self.more = [
            [self._signal(2, f"further_{n}_{way}") for way in numbers] for n, numbers in each
        ]
        places = [
            [f"way_{way}.words[{n}]" if sets > 1 else f"entry_{way}" for way in numbers]
            for n, numbers in each
        ]
        self.entries = [
            [data.View(layout, self._signal(layout.size, place)) for place in row] for row in places
        ]
        reads = range(ways) if sets > 1 else range(0)
        self.reads = [self._signal(layout.size, f"way_{way}.read__0__data") for way in reads]
        self.changed = self._signal(1, "changed")

    def _signal(self, bits: int, name: str) -> Signal:
        signal = Signal(bits, name=f"seen_{len(self.names)}")
        self.names.append((signal, f"table.{name}"))
        return signal


#: Nothing bad in the first three cycles, and none in a cycle that follows two without.
_INDUCTION = "bmc3 -F 3; ind -F 2"


def _check(watched: _Watched, folder, script: str = _INDUCTION) -> str:
    """What ABC says."""
    (folder / "watched.il").write_text(rtlil.convert(watched, ports=watched.ports))
    seen = watched.seen.names
    commands = [
        "read_rtlil watched.il",
        "prep -flatten -top top",
        "memory_map",
        *(f"delete -input w:{signal.name}" for signal, _ in seen),
        "cd top",
        *(f"connect -set {signal.name} \\{name}" for signal, name in seen),
        "cd ..",
        *TO_AIGER,
    ]
    run_yosys(commands, purpose="the load history", folder=folder)
    return run_abc(folder, f"read_aiger watched.aig; {script}")


def _config(**changes) -> PeConfig:
    keys = frozenset({"halt", "set.ws", "ld.sram[8]"})
    return PeConfig(instructions=keys, **({"load_history": 8} | changes))


_SMALL = {"scratchpad_bytes": 64, "address_bits": 12}


@pytest.mark.parametrize("ways", [1, 2])
def test_what_is_found_is_in_the_scratchpad(ways: int, tmp_path) -> None:
    said = _check(_Watched(_config(load_history_ways=ways, **_SMALL)), tmp_path)
    assert "No output asserted in 3 frames" in said
    assert "Networks are equivalent" in said


def test_a_table_that_is_told_of_too_few_units_is_wrong(tmp_path) -> None:
    said = _check(_Watched(_config(load_history_ways=1, **_SMALL), late=True), tmp_path)
    assert "Networks are equivalent" not in said


@pytest.mark.slow
def test_entries_in_any_place_for_some_cycles(tmp_path) -> None:
    """Recorded, overwritten, looked for and found, a cycle each."""
    said = _check(_Watched(_config(load_history_ways=0, **_SMALL)), tmp_path, "bmc3 -F 4")
    assert "No output asserted in 4 frames" in said
