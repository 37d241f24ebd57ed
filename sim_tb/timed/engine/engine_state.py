"""Input of the timing models from Python: the state of an engine, and its sizes."""

from collections.abc import Sequence
from ctypes import c_uint64
from typing import Annotated, Any

from isa.compiled.library import Engine
from isa.compiled.simulator import CompiledSimulator
from isa.faults import FaultCause
from isa.iss.simulator import Observer
from isa.run import EngineEnd
from isa.table import INSTRUCTIONS, Instruction
from pe.config import PeConfig
from pe.counters import FLUSH_CYCLES
from pe.interface import EXACT_PC_WORDS, HistoryCounter, PeCounter
from pe.sequencer import overhead_cycles
from pe.vector.settings import SETTLING_CYCLES
from sim_tb.cosim.engine import CosimError
from support.schema import U32, C, Record, Signed

__all__ = [
    "EngineResult",
    "EngineState",
    "Sizes",
    "check_covered",
    "sizes_of",
]


_NUMBERS = (
    *("words", "buffer_words", "addressed_words", "exact_pc"),
    *("scratchpad_bytes", "address_bits", "arc_entries", "tags", "alignment"),
    *("clear_cycles", "flush_cycles", "settling_cycles", "counters"),
    *("history_sets", "history_ways", "history_turn"),
)


class Sizes(Record, numbers=_NUMBERS):
    """What the model must know of a configuration: ``words`` of the program, ``buffer_words`` of
    the instruction buffer, ``addressed_words`` a power of two; the load history has no ways where
    it is absent, and ``history_turn`` is what the program before has left in it."""


class EngineResult(Record):
    """What became of an engine."""

    counters: Annotated[Any, C(c_uint64 * len(PeCounter))]
    cycles: int
    pc: Signed
    cause: U32
    running: bool
    memory_error: bool
    history: Annotated[Any, C(c_uint64 * len(HistoryCounter))]
    history_turn: int

    def end(self, slot: int = 0) -> EngineEnd:
        """The end of the engine in ``slot`` of its vault, with its counters of
        :class:`pe.interface.PeCounter`."""
        state = "running" if self.running else "faulted" if self.cause else "halted"
        return EngineEnd(
            state=state,
            cause=FaultCause(self.cause),
            pc=self.pc,
            memory_error=self.memory_error,
            cycles=self.cycles,
            counters={item.name: self.counters[item] for item in PeCounter},
            pe=slot,
            slot=slot,
        )

    def history_counts(self) -> dict[str, int]:
        """The counters of :class:`pe.interface.HistoryCounter`, by name."""
        first = min(HistoryCounter)
        return {item.name: self.history[item - first] for item in HistoryCounter}


def check_covered(config: PeConfig) -> None:
    """Refuse an engine that the timing models do not cover.

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
    """The sizes of an engine of ``config`` with a program of ``words``; ``turn``, that the program
    before has left in its load history."""
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
    )


class EngineState(CompiledSimulator):
    """The state of an engine, and its program as the timing model takes it."""

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
        """The structure that the model changes."""
        for number, value in enumerate(self.registers):
            self._engine.registers[number] = value
        return self._engine
