"""The timing model of one engine with a memory, with the interface of its cosimulation."""

import ctypes
import time
from collections.abc import Callable
from ctypes import POINTER, byref, c_bool, c_char_p, c_int32, c_uint64, c_void_p
from dataclasses import replace
from functools import cache

from isa.assembly.disassembler import located
from isa.compiled.library import Engine
from isa.image import DramImage
from isa.program import Program, still_running
from isa.run import EngineEnd, Launch, Machine, RunResult
from pe.config import PeConfig
from pe.scratchpad import read_roles
from sim_tb.cosim.engine import CosimError, TooLong, check_launch, check_start
from sim_tb.harness.engine import ALONE, NEVER, EngineIdentity
from sim_tb.harness.memory import MEMORY, MemoryBehaviour
from sim_tb.timed.library import compile_model
from support.schema import pack, structure

from .engine_state import (
    EngineResult,
    EngineState,
    Sizes,
    TimedWord,
    check_covered,
    sizes_of,
    timed_words,
)

#: Cycles between checks for signals.
_AT_ONCE = 1 << 20


@cache
def _library() -> ctypes.CDLL:
    return compile_model(
        "engine/model.cpp",
        (MEMORY,),
        compiled=False,
        functions={
            "vip_image_open": (c_int32, c_char_p),
            "vip_timed_start": (
                c_void_p,
                POINTER(Sizes),
                POINTER(Engine),
                POINTER(TimedWord),
                POINTER(structure(MEMORY.job)),
                c_uint64,
            ),
            "vip_timed_run": (c_bool, c_void_p, c_uint64),
            "vip_timed_result": (None, c_void_p, POINTER(EngineResult)),
            "vip_timed_violation": (c_char_p, c_void_p),
            "vip_timed_end": (None, c_void_p),
        },
    )


class PeModel(Machine):
    """The timing model of an engine, with the interface of
    :class:`sim_tb.cosim.engine.PeSimulation`.

    A run takes as many cycles as the Verilog, with the same counters and the same final state.
    However, results of the vector unit are available at once, so a program with hazards
    (:class:`isa.timing.Hazard`) takes the cycles of the Verilog and computes the simulator's
    results.

    Parameters:
        config: of the engine; with registers of 64 bits.
        memory: how the memory responds, unless a run says otherwise; None: the default.

    Raises:
        CosimError: the model does not cover ``config``; the message says why.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """

    config: PeConfig
    lenient = True

    def __init__(self, config: PeConfig, *, memory: MemoryBehaviour | None = None) -> None:
        check_covered(config)
        self.config = config
        self._behaviour = memory or MemoryBehaviour()
        self._library = _library()
        self._scratchpad = bytes(config.scratchpad_bytes)
        self._buffer = (TimedWord * config.instruction_words)()
        self._turn = 0

    def run(
        self,
        launch: Launch,
        image: DramImage,
        *,
        engines: int | None = None,
        memory: MemoryBehaviour | None = None,
        identity: EngineIdentity = ALONE,
        reset: bool = True,
        scratchpad: bytes | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> RunResult:
        """Run one launch; see :meth:`sim_tb.cosim.engine.PeSimulation.run`.

        Raises:
            CosimError: as described there.
        """
        config = self.config
        check_launch(launch, config)
        check_start(config, scratchpad, identity)
        if launch.limits is not None:
            raise CosimError("limits can only be given to a watched engine")
        if scratchpad is not None:
            self._scratchpad = scratchpad
        started = time.perf_counter()
        words = launch.program.words
        state = EngineState(
            words,
            image,
            **identity._asdict(),
            parameters=launch.parameters,
            scratchpad=self._scratchpad,
            **config.limits,
        )
        library = self._library
        if library.vip_image_open(str(image.path.absolute()).encode()):
            raise CosimError(f"{image.path} can't be mapped into memory")
        # The words after the program are left from earlier programs.
        self._buffer[: len(words)] = timed_words(words, state.rows, config)
        engine = state.engine
        stop = NEVER if launch.stop_after is None else launch.stop_after
        turn = 0 if reset else self._turn
        sizes, result = sizes_of(config, len(words), turn), EngineResult()
        run = library.vip_timed_start(
            byref(sizes),
            byref(engine),
            self._buffer,
            byref(pack(memory or self._behaviour)),
            stop,
        )
        try:
            ended = self._finish(run, launch.max_cycles, progress)
            library.vip_timed_result(run, byref(result))
            if not ended:
                place = located(launch.program, result.pc)
                raise TooLong(still_running(place, launch.max_cycles, "cycle"))
            if violation := library.vip_timed_violation(run):
                raise CosimError(f"memory port rule broken: {violation.decode()}")
        finally:
            self._scratchpad = bytes(state.scratchpad)
            self._turn = result.history_turn
            library.vip_timed_end(run)
        end = self._end(result, launch.program, engine)
        return RunResult(
            engines=(end,), simulated_cycles=result.cycles, seconds=time.perf_counter() - started
        )

    def _finish(self, run: int, cycles: int, progress: Callable[[int], None] | None) -> bool:
        """Continue ``run``; returns whether it ends within ``cycles``."""
        done = 0
        while self._library.vip_timed_run(run, done := min(done + _AT_ONCE, cycles)):
            if done == cycles:
                return False
            if progress is not None:
                progress(done)
        return True

    def _end(self, result: EngineResult, program: Program, engine: Engine) -> EngineEnd:
        config = self.config
        end = result.end(program, config)
        return replace(
            end,
            counters={
                **end.counters,
                **(result.history_counts() if config.load_history else {}),
            },
            registers=list(engine.registers[: config.registers]),
            # An engine omits a scratchpad that nothing reads.
            scratchpad=self._scratchpad if read_roles(config) else b"",
        )
