"""Load history: columns of the declared image still in the scratchpad are copied within it.

:class:`pe.lsu.history.History` copies them, and :class:`pe.lsu.history_table.HistoryTable` knows
where they are.
"""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Value

from hdl.bundle import Bundle
from hdl.ports import BYTE_BITS, COLUMN_BITS, WORD_BITS
from isa.limits import RANGE_BYTES
from pe.codes import ControlOp
from pe.config import PeConfig
from pe.interface import HistoryCounter

from .extension import ControlRules, DispatchStep, LsuExtension, ResponseStep

_UNIT_SHIFT = (RANGE_BYTES - 1).bit_length()

#: ``fenced``: ``memfence`` executes; no access is under way.
FENCED = Bundle(fenced=1)
#: ``probed``: a column of the declared image is looked for. ``copied``, ``asked``: that column is
#: copied within the scratchpad, or memory is asked for it.
HISTORY_EVENTS = Bundle(probed=1, copied=1, asked=1)


def overwriting(config: PeConfig) -> Bundle:
    """``overwrites``: the instruction that is dispatched will write units of the scratchpad, from
    ``first_unit`` to the one before ``end_unit``."""
    bits = config.end_unit_bits
    return Bundle(overwrites=1, first_unit=bits - 1, end_unit=bits)


def column_record(config: PeConfig) -> Bundle:
    """``record``: of the DRAM column ``column``, the bytes ``first`` to ``last`` are in the
    scratchpad at the end of this cycle; byte 0 belongs to ``place``, even if it is not there."""
    return Bundle(
        record=1,
        column=config.address_bits - COLUMN_BITS,
        place=config.scratchpad_bits,
        first=COLUMN_BITS,
        last=COLUMN_BITS,
    )


class _History(LsuExtension):
    name = "history"
    reads_scratchpad = True
    counters: ClassVar = {
        HistoryCounter.HISTORY_PROBES: "probed",
        HistoryCounter.HISTORY_HITS: "copied",
        HistoryCounter.WORKSPACE_COLUMNS: "asked",
    }

    def is_in(self, config: PeConfig) -> bool:
        return bool(config.load_history)

    def links(self, config: PeConfig) -> dict[tuple[str, str], Bundle]:
        return {
            ("issue", "load_store"): FENCED,
            ("dispatch", "load_store"): overwriting(config),
            ("load_store", "counters"): HISTORY_EVENTS,
        }

    def members(self, config: PeConfig) -> dict[str, dict[str, Any]]:
        """``recorded``: it is a load of the declared image. ``data``: the bytes to be filled.
        ``column``: the number of a request's column; ``begin``, ``end``: words of the column that
        hold the first and the last byte wanted."""
        word = COLUMN_BITS - BYTE_BITS
        column = config.address_bits - COLUMN_BITS
        return {
            "transfer": {"recorded": 1},
            "fill": {"data": WORD_BITS},
            "entry": {"recorded": 1, "column": column, "begin": word, "end": word},
        }

    def outputs(self, config: PeConfig) -> dict[str, Bundle]:
        """``unread``: the scratchpad's port is in use, or its word is."""
        return {"request": Bundle(unread=1), "response": column_record(config)}

    def control(self, m: Module, unit: Any, check: Any, quiet: Value, rules: ControlRules) -> None:
        ends, effects = rules[ControlOp.MEMFENCE.value]
        effects.append(unit.fenced.eq(ends))

    def dispatch(self, m: Module, unit: Any, step: DispatchStep) -> None:
        assert step.lowered is not None
        assert step.inside_image is not None
        places = step.instruction.operands.places
        load = step.inside_image & ~step.store & ~step.register
        m.d.comb += [
            unit.load_store.payload.recorded.eq(step.lowered | load),
            # Of a load or vector instruction; a store has no range A.
            unit.overwrites.eq(step.fire & step.instruction.used[0]),
            unit.first_unit.eq(places[0].start[_UNIT_SHIFT:]),
            unit.end_unit.eq(places[0].end),
        ]

    def request(self, m: Module, unit: Any, work: Any) -> None:
        entry = unit.table_entry
        m.d.comb += [
            unit.unread.eq(
                (work.working & work.store)
                | (work.waits & work.waiting_store)
                | (work.formed_valid & work.formed.write)
            ),
            entry.recorded.eq(work.current.recorded),
            entry.column.eq(work.current.dram[COLUMN_BITS:]),
            entry.begin.eq(work.word),
            entry.end.eq(work.end[BYTE_BITS:]),
        ]

    def response(self, m: Module, unit: Any, step: ResponseStep) -> None:
        beat, entry, place = step.beat, step.entry, step.place
        m.d.comb += [
            unit.record.eq(step.loads & beat.last & entry.recorded & ~beat.error),
            unit.column.eq(entry.column),
            unit.place.eq(place.address - Cat(Const(0, BYTE_BITS), entry.begin)),
            unit.first.eq(Cat(entry.first, entry.begin)),
            unit.last.eq(Cat(place.last, entry.end)),
        ]


HISTORY = _History()
