"""The timing model of one engine beside a memory, with the interface of its cosimulation."""

import ctypes
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import POINTER, byref, c_bool, c_char_p, c_int64, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path

from isa.compiled import rows as functional_rows
from isa.compiled.library import SOURCES, Engine
from isa.compiled.simulator import CompiledSimulator
from isa.faults import FaultCause
from isa.iss.simulator import Observer
from isa.support.native import compile_library
from isa.table import INSTRUCTIONS, Instruction
from pe.config import PeConfig
from pe.counters import FLUSH_CYCLES
from pe.interface import EXACT_PC_WORDS, PeCounter, PeState
from pe.sequencer import overhead_cycles
from pe.vector.settings import SETTLING_CYCLES
from sim_tb.cosim.engine import CosimError, CosimResult, Job
from sim_tb.harness.engine import NEVER
from sim_tb.harness.memory import MEMORY
from sim_tb.harness.schema import pack, structure

from .words import TimedWord, constants, timed_words

__all__ = ["PeModel"]

_HERE = Path(__file__).parent
_MODELS = _HERE.parent / "models"
_HEADERS = (
    *sorted(path for path in _HERE.glob("*.*") if path.suffix in (".cpp", ".h")),
    *(_MODELS / name for name in MEMORY.sources + MEMORY.behaviour),
    *SOURCES,
)
_FLAGS = ("-std=c++20", "-O3", "-Wall", "-Wextra")
#: Cycles between two looks at signals.
_AT_ONCE = 1 << 20


class _Sizes(ctypes.Structure):
    """What the model must know of a configuration; see ``pe_model.h``."""

    _fields_ = tuple(
        (name, c_uint64)
        for name in (
            "words",
            "buffer_words",
            "addressed_words",
            "exact_pc",
            "scratchpad_bytes",
            "address_bits",
            "arc_entries",
            "tags",
            "alignment",
            "clear_cycles",
            "flush_cycles",
            "settling_cycles",
            "counters",
        )
    )


class _Result(ctypes.Structure):
    """How a run went; see ``model.cpp``."""

    _fields_ = (
        ("counters", c_uint64 * len(PeCounter)),
        ("cycles", c_uint64),
        ("pc", c_int64),
        ("cause", c_uint32),
        ("memory_error", c_bool),
        ("violation", c_char_p),
    )


@cache
def _library() -> ctypes.CDLL:
    found = compile_library(
        "timing model",
        _HERE / "model.cpp",
        _FLAGS,
        headers=_HEADERS,
        generated={
            "rows.inc": functional_rows.rows(),
            "constants.inc": functional_rows.constants(),
            "timed.inc": constants(),
            "vip_memory.h": MEMORY.header,
        },
    )
    found.vip_image_open.argtypes = (c_char_p,)
    found.vip_timed_start.argtypes = (
        POINTER(_Sizes),
        POINTER(Engine),
        POINTER(TimedWord),
        POINTER(structure(MEMORY.job)),
        c_uint64,
    )
    found.vip_timed_start.restype = c_void_p
    found.vip_timed_run.argtypes = (c_void_p, c_uint64)
    found.vip_timed_run.restype = c_bool
    found.vip_timed_result.argtypes = (c_void_p, POINTER(_Result))
    found.vip_timed_result.restype = None
    found.vip_timed_end.argtypes = (c_void_p,)
    found.vip_timed_end.restype = None
    return found


class _State(CompiledSimulator):
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


class PeModel:
    """The timing model of an engine, with the interface of
    :class:`sim_tb.cosim.engine.PeSimulation`.

    A run takes the cycles that the Verilog takes, with the same counters, and leaves what it
    leaves. Results of the vector unit are there at once, however, so that a program with hazards
    (:mod:`isa.hazards`) takes the cycles of the Verilog and computes what the simulator does.

    Parameters:
        config: of the engine; with registers of 64 bits.

    Raises:
        CosimError: the model does not cover ``config``; the message says why.
        isa.support.native.CompilerError: there is no C++ compiler, or it fails.
    """

    def __init__(self, config: PeConfig) -> None:
        if config.narrow:
            raise CosimError(
                f"the timing model has registers of 64 bits, not of {config.register_width}"
            )
        if config.program is not None:
            raise CosimError("the timing model has an instruction buffer, and no built-in program")
        self.config = config
        self._library = _library()
        self._scratchpad = bytes(config.scratchpad_bytes)
        self._buffer = (TimedWord * config.instruction_words)()

    def __enter__(self) -> "PeModel":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run_many(
        self, jobs: Iterable[Job], progress: Callable[[int], None] | None = None
    ) -> Iterator[CosimResult | CosimError]:
        """Run ``jobs`` in order; see :meth:`sim_tb.cosim.engine.PeSimulation.run_many`."""
        for job in jobs:
            yield self._run(job, progress)

    def run(self, job: Job, progress: Callable[[int], None] | None = None) -> CosimResult:
        """Run one job.

        Raises:
            CosimError: as described there.
        """
        result = self._run(job, progress)
        if isinstance(result, CosimError):
            raise result
        return result

    def _run(self, job: Job, progress: Callable[[int], None] | None) -> CosimResult | CosimError:
        config, identity = self.config, job.identity
        if job.limits is not None:
            raise CosimError("limits can only be given to a watched engine")
        if job.scratchpad is not None:
            self._scratchpad = job.scratchpad
        started = time.perf_counter()
        state = _State(
            job.words,
            job.image,
            pe_index=identity.pe_index,
            vault=identity.vault,
            slot=identity.slot,
            pe_count=identity.pe_count,
            parameters=job.parameters,
            scratchpad=self._scratchpad,
            **config.limits,
        )
        library = self._library
        if library.vip_image_open(str(job.image.path.absolute()).encode()):
            raise CosimError(f"{job.image.path} can't be mapped into memory")
        # What comes after the program is what those before it left.
        self._buffer[: len(job.words)] = timed_words(job.words, state.rows, config)
        engine = state.engine
        stop = NEVER if job.stop_after is None else job.stop_after
        sizes, result = self._sizes(len(job.words)), _Result()
        run = library.vip_timed_start(
            byref(sizes), byref(engine), self._buffer, byref(pack(job.memory)), stop
        )
        try:
            done = 0
            while library.vip_timed_run(run, done := min(done + _AT_ONCE, job.max_cycles)):
                if done == job.max_cycles:
                    return CosimError(f"the program did not end within {done} cycles")
                if progress is not None:
                    progress(done)
            library.vip_timed_result(run, byref(result))
            if result.violation:
                return CosimError(f"memory port rule broken: {result.violation.decode()}")
        finally:
            self._scratchpad = bytes(state.scratchpad)
            library.vip_timed_end(run)
        cause = FaultCause(result.cause)
        return CosimResult(
            state=PeState.HALTED if cause is FaultCause.NONE else PeState.FAULTED,
            cause=cause,
            pc=result.pc,
            cycles=result.cycles,
            counters={item.name: result.counters[item] for item in PeCounter},
            registers=list(engine.registers[: config.registers]),
            scratchpad=self._scratchpad,
            wall_seconds=time.perf_counter() - started,
            memory_error=result.memory_error,
        )

    def _sizes(self, words: int) -> _Sizes:
        config = self.config
        flush = FLUSH_CYCLES if config.counters else 1
        return _Sizes(
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
        )
