"""Table of the load history: which memory columns are in the scratchpad, and where."""

from functools import reduce
from operator import or_, xor
from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import COLUMN_BITS
from hdl.priority import lowest_one
from hdl.sram import Sram
from isa.limits import RANGE_BYTES
from pe.config import PeConfig
from pe.extensions.history import column_record, overwriting

_UNIT_SHIFT = (RANGE_BYTES - 1).bit_length()
#: Units that a column's bytes touch in the scratchpad, at most, less one.
_MORE_UNITS = 2


class HistoryTable(Component):
    """Sets of entries. An entry holds bytes of a column and their place in the scratchpad, and is
    dropped as soon as an instruction that will write there is dispatched.

    The set of a column is a hash of its number. A new entry takes a free place of the set, or else
    one in turn. A column may have several entries, with bytes of their own.

    Members:
        probe: in; look for bytes ``probed_first`` to ``probed_last`` of ``probed_column``, in;
            these stay in the next cycle, too.
        hit: out, in that next cycle: they are at ``hit_place`` of the scratchpad, by the place
            of the column's byte 0; ``hit_way``, out: of which entry of the set. stale: out; the
            set has changed meanwhile, and the rest of the answer counts for nothing.
        record, column, place, first, last: :func:`pe.extensions.history.column_record`, in.
        renew: in; it takes the entry ``way`` of its set, in.
        overwrites, first_unit, end_unit: :func:`pe.extensions.history.overwriting`, in. Never in
            the cycle of a record whose bytes it touches, as the ARC makes that instruction wait.
        empty: in; drop all entries; not during a look.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self._sets = config.history_sets
        self._ways = config.history_ways
        way_bits = (self._ways - 1).bit_length()
        column = config.address_bits - COLUMN_BITS
        super().__init__(
            {
                "probe": In(1),
                "probed_column": In(column),
                "probed_first": In(COLUMN_BITS),
                "probed_last": In(COLUMN_BITS),
                "hit": Out(1),
                "hit_place": Out(config.scratchpad_bits),
                "hit_way": Out(way_bits),
                "stale": Out(1),
                **column_record(config).inputs(),
                "renew": In(1),
                "way": In(way_bits),
                **overwriting(config).inputs(),
                "empty": In(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        sets, ways = self._sets, self._ways
        probed_set = Signal(range(max(2, sets)))
        new_set = Signal.like(probed_set)
        m.d.comb += [
            probed_set.eq(self._hash(self.probed_column)),
            new_set.eq(self._hash(self.column)),
        ]
        valid = [Signal(ways, name=f"valid_{number}") for number in range(sets)]
        valid_probed = self._of_set(valid, probed_set)
        valid_new = self._of_set(valid, new_set)

        turn = Signal(range(max(2, ways)))
        way = Signal(range(max(2, ways)))
        m.d.comb += way.eq(
            Mux(
                self.renew,
                self.way,
                Mux(valid_new.all(), turn, lowest_one(~valid_new) if ways > 1 else 0),
            )
        )
        if ways > 1:
            with m.If(self.record):
                m.d.sync += turn.eq(turn + 1)

        hits, places = [], []
        for number in range(ways):
            entry = self._entry(m, platform, number, probed_set, new_set, way == number)
            hit = Signal(name=f"hit_{number}")
            m.d.comb += hit.eq(
                valid_probed[number]
                & (entry.tag == self._tag(self.probed_column))
                & (entry.first <= self.probed_first)
                & (self.probed_last <= entry.last)
            )
            hits.append(hit)
            places.append(entry.place)
        matches = Signal(ways)
        m.d.comb += [
            matches.eq(Cat(hits)),
            self.hit.eq(matches.any()),
        ]
        if ways > 1:
            chosen = lowest_one(matches)
            m.d.comb += [
                self.hit_way.eq(chosen),
                self.hit_place.eq(
                    reduce(
                        or_,
                        (Mux(chosen == number, place, 0) for number, place in enumerate(places)),
                    )
                ),
            ]
        else:
            m.d.comb += self.hit_place.eq(places[0])

        changed = Signal()
        m.d.sync += changed.eq(self.record & (new_set == probed_set))
        m.d.comb += self.stale.eq(changed | self.overwrites)
        self._keep_valid(m, valid, new_set, way)
        return m

    def _layout(self) -> data.StructLayout:
        """An entry, but for what tells whether it is overwritten."""
        return data.StructLayout(
            {
                "tag": len(self._tag(self.probed_column)),
                "place": self.config.scratchpad_bits,
                "first": COLUMN_BITS,
                "last": COLUMN_BITS,
            }
        )

    def _hash(self, column: Value) -> Value:
        """Number of the set: all bits of the column's number, folded by exclusive or."""
        bits = (self._sets - 1).bit_length()
        if not bits:
            return Cat()
        return reduce(xor, (column[low : low + bits] for low in range(0, len(column), bits)))

    def _tag(self, column: Value) -> Value:
        """Tag of a column; its lowest bits follow from tag and set number."""
        return column[(self._sets - 1).bit_length() :]

    def _of_set(self, valid: list[Signal], chosen: Value) -> Value:
        if self._sets == 1:
            return valid[0]
        return reduce(or_, (Mux(chosen == n, flags, 0) for n, flags in enumerate(valid)))

    def _entry(
        self,
        m: Module,
        platform: object,
        number: int,
        probed_set: Value,
        new_set: Value,
        chosen: Value,
    ) -> Any:
        """Entry ``number`` of the set ``probed_set``, a cycle after the probe, and its writing."""
        layout = self._layout()
        new_entry = data.View(layout, Signal(layout.size, name=f"new_entry_{number}"))
        m.d.comb += [
            new_entry.tag.eq(self._tag(self.column)),
            new_entry.place.eq(self.place),
            new_entry.first.eq(self.first),
            new_entry.last.eq(self.last),
        ]
        write = self.record & chosen
        if self._sets == 1:
            entry = data.View(layout, Signal(layout.size, name=f"entry_{number}", reset_less=True))
            with m.If(write):
                m.d.sync += entry.eq(new_entry)
            return entry
        memory = Sram(
            width=layout.size,
            depth=self._sets,
            read_ports=1,
            write_ports=1,
            kind=self.config.sram,
        )
        m.submodules[f"way_{number}"] = shared_instance(memory, platform)
        (read,), (port,) = memory.read, memory.write
        m.d.comb += [
            read.enable.eq(self.probe),
            read.address.eq(probed_set),
            port.enable.eq(write),
            port.address.eq(new_set),
            port.data.eq(new_entry),
        ]
        return data.View(layout, read.data)

    def _keep_valid(self, m: Module, valid: list[Signal], new: Value, way: Value) -> None:
        """Which entries hold something, and the units of the scratchpad that each one lies in."""
        bits = len(self.first_unit)
        first_byte = Signal(self.config.scratchpad_bits)
        last_byte = Signal(self.config.scratchpad_bits)
        further_units = Signal(range(_MORE_UNITS + 1))
        before, second_before = Signal(bits), Signal(bits)
        m.d.comb += [
            first_byte.eq(self.place + self.first),
            last_byte.eq(self.place + self.last),
            further_units.eq(last_byte[_UNIT_SHIFT:] - first_byte[_UNIT_SHIFT:]),
            before.eq(self.first_unit - 1),
            second_before.eq(self.first_unit - 2),
        ]
        for number, flags in enumerate(valid):
            mine = self.record & (new == number) if self._sets > 1 else self.record
            for index in range(self._ways):
                name = f"{number}_{index}"
                unit = Signal(bits, name=f"unit_{name}", reset_less=True)
                further = Signal.like(further_units, name=f"further_{name}", reset_less=True)
                touched = Signal(name=f"touched_{name}")
                m.d.comb += touched.eq(
                    self.overwrites
                    & (unit < self.end_unit)
                    & (
                        (unit >= self.first_unit)
                        | ((unit == before) & (further != 0))
                        | ((unit == second_before) & (further == _MORE_UNITS))
                    )
                )
                with m.If(self.empty):
                    m.d.sync += flags[index].eq(0)
                with m.Elif(mine & (way == index if self._ways > 1 else 1)):
                    m.d.sync += [
                        flags[index].eq(1),
                        unit.eq(first_byte[_UNIT_SHIFT:]),
                        further.eq(further_units),
                    ]
                with m.Elif(touched):
                    m.d.sync += flags[index].eq(0)
