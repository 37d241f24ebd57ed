"""Program words as the timing model's front end needs them, and the constants that it shares."""

from collections.abc import Mapping, Sequence
from ctypes import c_uint8
from typing import Annotated, Any

from hdl.ports import COLUMN_BYTES, COLUMN_WORDS
from isa.launch import START_FX, START_MR, START_VL
from isa.table import (
    FIELD_A,
    FIELD_B,
    FIELD_C,
    MAX_FX,
    OPCODE,
    Extent,
    Instruction,
    Opcode,
    Unit,
)
from isa.timing import RANGE_BYTES, VECTOR_LATENCY, WORD_BYTES
from pe.config import PeConfig
from pe.interface import HistoryCounter, PeCounter
from pe.lsu.declaration import DECLARATION_CYCLES
from support.schema import U8, C, Record, declarations

__all__ = ["TimedWord", "constants", "declared", "timed_words"]

_FIELDS = (FIELD_A, FIELD_B, FIELD_C)
_UNITS = {unit: number for number, unit in enumerate(Unit, start=1)}
_EXTENTS = {extent: number for number, extent in enumerate(Extent, start=1)}
_CONTROL = (
    Opcode.SET_VL,
    Opcode.SET_MR,
    Opcode.SET_FX,
    Opcode.DRAIN,
    Opcode.MEMFENCE,
    Opcode.HALT,
    Opcode.SET_WS,
)


class TimedWord(Record):
    """What the front end must know of a word.

    Attributes:
        width: log2 of an element's bytes.
        extents: of what lies where A, B and C point.
    """

    unit: U8
    control: U8
    a: U8
    b: U8
    c: U8
    reads_a: bool
    reads_b: bool
    reads_c: bool
    writes: bool
    legal: bool
    store: bool
    is_register: bool
    matrix: bool
    width: U8
    passes: U8
    extents: Annotated[Any, C(c_uint8 * 3)]


def constants(*records: type[Record]) -> str:
    """``timed.inc``: numbers of counters, units, control instructions and extents; times; and
    ``records``."""
    counters = (*PeCounter, *HistoryCounter)
    values = {_camel(item.name): item.value for item in counters}
    values |= {_camel(unit.name): number for unit, number in _UNITS.items()}
    values |= {f"Extent{_camel(item.name)}": number for item, number in _EXTENTS.items()}
    values |= {_camel(item.name): number for number, item in enumerate(_CONTROL, start=1)}
    values |= {
        "Counters": len(PeCounter),
        "HistoryCounters": len(HistoryCounter),
        "NoExtent": 0,
        "RangeBytes": RANGE_BYTES,
        "WordBytes": WORD_BYTES,
        "ColumnWords": COLUMN_WORDS,
        "ColumnBytes": COLUMN_BYTES,
        "VectorLatency": VECTOR_LATENCY,
        "MostFx": MAX_FX,
        "StartVl": START_VL,
        "StartMr": START_MR,
        "StartFx": START_FX,
        "DeclarationCycles": DECLARATION_CYCLES,
    }
    return declared(values, declarations(*records))


def declared(values: Mapping[str, int], *blocks: str) -> str:
    """A header: each of ``values`` as a constant, ``Name`` as ``kName``, then lines in C++."""
    lines = [f"constexpr uint32_t k{name} = {value};" for name, value in values.items()]
    head = ["#pragma once", "#include <cstdint>", "namespace vip::timed {"]
    return "\n".join([*head, *lines, *blocks, "}", ""])


def _camel(name: str) -> str:
    return name.title().replace("_", "")


def timed_words(
    words: Sequence[int], rows: Sequence[Instruction | None], config: PeConfig
) -> list[TimedWord]:
    """The words of a program, which are the instructions ``rows``, or None: none that the engine
    has. An illegal word still waits for the registers that its opcode reads."""
    groups: dict[int, Instruction] = {}
    for first in config.rows:
        groups.setdefault(first.opcode, first)
    timed = []
    for word, row in zip(words, rows, strict=True):
        likely = groups.get(OPCODE.extract(word))
        timed.append(_timed(word, row or likely, config, legal=row is not None))
    return timed


def _timed(word: int, row: Instruction | None, config: PeConfig, *, legal: bool) -> TimedWord:
    if row is None:
        return TimedWord()
    a, b, c = (field.extract(word) % (1 << config.register_bits) for field in _FIELDS)
    reads = [field in row.reads for field in _FIELDS]
    extents = [0, 0, 0]
    for operand in row.scratchpad:
        if operand.field in row.reads:
            extents[_FIELDS.index(operand.field)] = _EXTENTS[operand.extent]
    return TimedWord(
        unit=_UNITS[row.unit],
        control=1 + _CONTROL.index(Opcode(row.opcode)) if row.unit is Unit.ISSUE else 0,
        a=a,
        b=b,
        c=c,
        reads_a=reads[0],
        reads_b=reads[1],
        reads_c=reads[2],
        writes=row.writes is not None,
        legal=legal,
        store=row.opcode in (Opcode.ST_SRAM, Opcode.ST_REG),
        is_register=row.opcode in (Opcode.LD_REG, Opcode.ST_REG),
        matrix=row.opcode == Opcode.MATRIX_VECTOR,
        width=0 if row.width is None else row.width.value,
        passes=row.passes if row.unit is Unit.VECTOR else 1,
        extents=(c_uint8 * 3)(*extents),
    )
