"""Inputs of the timing models from Python: an engine's program, state and sizes."""

from collections.abc import Sequence
from ctypes import c_uint8, c_uint64
from typing import Annotated, Any

from isa.compiled.library import Engine
from isa.compiled.simulator import CompiledSimulator
from isa.iss.simulator import Observer
from isa.program import Program
from isa.run import EngineEnd
from isa.table import (
    FIELD_A,
    FIELD_B,
    FIELD_C,
    INSTRUCTIONS,
    OPCODE,
    Extent,
    Instruction,
    Opcode,
    Unit,
)
from pe.config import PeConfig
from pe.counters import FLUSH_CYCLES
from pe.interface import EXACT_PC_WORDS, HistoryCounter, PeCounter
from pe.sequencer import overhead_cycles
from pe.vector.settings import SETTLING_CYCLES
from pe.vector.stages import result_cycles
from sim_tb.cosim.engine import CosimError
from sim_tb.harness.engine import engine_end
from support.schema import U8, U32, C, Record, Signed

_FIELDS = (FIELD_A, FIELD_B, FIELD_C)
#: Numbers of units, extents and control instructions in C++; 0: none. The order of the last ones
#: matters.
UNITS = {unit: number for number, unit in enumerate(Unit, start=1)}
EXTENTS = {extent: number for number, extent in enumerate(Extent, start=1)}
CONTROL = (
    Opcode.SET_VL,
    Opcode.SET_MR,
    Opcode.SET_FX,
    Opcode.DRAIN,
    Opcode.MEMFENCE,
    Opcode.HALT,
    Opcode.SET_WS,
)


class TimedWord(Record):
    """What the front end needs to know about a word.

    Attributes:
        width: log2 of an element's bytes.
        extents: of the data that A, B and C point to.
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


def timed_words(
    words: Sequence[int], rows: Sequence[Instruction | None], config: PeConfig
) -> list[TimedWord]:
    """The words of a program. ``rows`` has the instruction of each, None if the engine lacks it. An
    illegal word still waits for the registers that its opcode reads."""
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
            extents[_FIELDS.index(operand.field)] = EXTENTS[operand.extent]
    return TimedWord(
        unit=UNITS[row.unit],
        control=1 + CONTROL.index(Opcode(row.opcode)) if row.unit is Unit.ISSUE else 0,
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


_NUMBERS = (
    *("words", "buffer_words", "addressed_words", "exact_pc"),
    *("scratchpad_bytes", "address_bits", "arc_entries", "tags", "alignment"),
    *("clear_cycles", "flush_cycles", "settling_cycles", "counters"),
    *("history_sets", "history_ways", "history_turn"),
    "result_cycles",
)


class Sizes(Record, numbers=_NUMBERS):
    """What the model needs to know about a configuration: ``words`` of the program,
    ``buffer_words`` of the instruction buffer, ``addressed_words``, a power of two. Without a load
    history there are 0 ways; ``history_turn`` is what the previous program left in it.
    ``result_cycles``: those of :func:`pe.vector.stages.result_cycles` if accesses to the scratchpad
    share ports, or 0."""


class EngineResult(Record):
    """Final state of an engine."""

    counters: Annotated[Any, C(c_uint64 * len(PeCounter))]
    cycles: int
    pc: Signed
    cause: U32
    running: bool
    memory_error: bool
    history: Annotated[Any, C(c_uint64 * len(HistoryCounter))]
    history_turn: int

    def end(self, program: Program, config: PeConfig, slot: int = 0) -> EngineEnd:
        """The end of the engine of ``config`` in ``slot`` of its vault."""
        state = "running" if self.running else "faulted" if self.cause else "halted"
        return engine_end(self, state, program, config, slot)

    def history_counts(self) -> dict[str, int]:
        """The counters of :class:`pe.interface.HistoryCounter`, by name."""
        first = min(HistoryCounter)
        return {item.name: self.history[item - first] for item in HistoryCounter}


def check_covered(config: PeConfig) -> None:
    """Refuse an engine that the timing models don't cover.

    Raises:
        CosimError: the message says why.
    """
    if config.narrow:
        raise CosimError(
            f"the timing model has registers of 64 bits, not of {config.register_width}"
        )
    if config.program is not None:
        raise CosimError("the timing model has an instruction buffer, and no built-in program")


def sizes_of(config: PeConfig, words: int, turn: int = 0) -> Sizes:
    """The sizes of an engine of ``config`` with a program of ``words``; ``turn`` is what the
    previous program left in its load history."""
    flush = FLUSH_CYCLES if config.counters else 1
    return Sizes(
        words=words,
        buffer_words=config.instruction_words,
        addressed_words=1 << config.pc_bits,
        exact_pc=config.instruction_words >= EXACT_PC_WORDS,
        scratchpad_bytes=config.scratchpad_bytes,
        address_bits=config.address_bits,
        arc_entries=config.arc_entries,
        tags=config.load_store_queue,
        alignment=config.scratchpad_alignment,
        clear_cycles=overhead_cycles(config) - flush,
        flush_cycles=flush,
        settling_cycles=SETTLING_CYCLES,
        counters=config.counters,
        history_sets=config.history_sets if config.load_history else 0,
        history_ways=config.load_history // config.history_sets if config.load_history else 0,
        history_turn=turn,
        result_cycles=result_cycles(config) if config.shared_ports else 0,
    )


class EngineState(CompiledSimulator):
    """The state of an engine, and its program in the timing model's format."""

    def _load(
        self, words: Sequence[int], rows: Sequence[Instruction | None], observer: Observer | None
    ) -> None:
        super()._load(words, rows, observer)
        illegal = len(INSTRUCTIONS)
        self.rows = [
            None if self._engine.program[number].row == illegal else row
            for number, row in enumerate(rows)
        ]

    @property
    def engine(self) -> Engine:
        """The structure that the model modifies."""
        for number, value in enumerate(self.registers):
            self._engine.registers[number] = value
        return self._engine
