"""The timing model of a chip, with the interface of its cosimulation.

Its threads wait for each other every few cycles of the chip. If other processes occupy the
processors, each wait lasts as long as they run, and several threads are many times slower than one.
So no more threads work than there are free processors.
"""

import ctypes
import os
import time
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, POINTER, byref, c_bool, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import memory.model.device_model
from isa.compiled.library import Engine
from isa.image import DramImage
from memory.axi.layout import AxiConfig
from memory.model.device_model import DEVICE_SOURCES, DeviceModel
from sim_tb.cosim.chip import AXI_LATENCY, ChipSession
from sim_tb.cosim.engine import CosimError
from sim_tb.harness.chip import AXI_MEMORY, CHIP, Kind, Operation, Result
from sim_tb.harness.engine import ALONE, EngineIdentity
from sim_tb.harness.models import Library
from sim_tb.timed.engine.engine_state import (
    EngineState,
    Sizes,
    TimedWord,
    check_covered,
    sizes_of,
    timed_words,
)
from sim_tb.timed.library import compile_model, declared
from sim_tb.timed.vault.vault_sizes import AxiSizes, LineSizes, VaultSizes, vault_constants
from soc.chip.config import ChipConfig
from support.schema import C, Record, declarations

from .chip_sizes import (
    ChipSizes,
    HostSizes,
    NetworkSizes,
    RegisterMap,
    control_constants,
    network_constants,
)

#: Fewer threads work for this many times as long as a wait took: at first, and, with twice as many
#: after each wait that comes soon after the last change, at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 8, 64


class Workers:
    """Chooses the number of working threads.

    It is about halved when a thread waits for one without a processor, and doubled again after a
    while.

    Parameters:
        limit: number of threads, at least 1.
    """

    def __init__(self, limit: int) -> None:
        self._counts = [*(1 << bit for bit in range((limit - 1).bit_length())), limit]
        self._level = len(self._counts) - 1
        # Times of the last change, and of the next one to more threads.
        self._changed = self._rises = 0.0
        self._pause = _FIRST_PAUSE

    def choose(self, time: float) -> int:
        """The number of threads that work from ``time`` (in seconds) on."""
        if self._level + 1 < len(self._counts) and time >= self._rises:
            self._level += 1
            self._changed = time
        return self._counts[self._level]

    def waited(self, time: float, seconds: float) -> None:
        """Report that a thread has waited for ``seconds`` until ``time``."""
        # Much work since the last change pays for a short wait.
        worked = time - seconds - self._changed
        paid = worked > _FIRST_PAUSE * seconds
        self._pause = _FIRST_PAUSE if paid else min(2 * self._pause, _LONGEST_PAUSE)
        self._level = max(0, self._level - 1)
        self._changed = time
        self._rises = time + self._pause * seconds


#: Cycles between checks for signals and, while fewer than all threads work, of the time.
_AT_ONCE = 1 << 13
_ON_FEWER = 1 << 10
#: Nanoseconds that a thread waits for others. If all have processors, a wait takes about 50,000.
_PATIENCE = 1_000_000
#: Address bits of an engine that sees all addresses.
_WHOLE = 64


class Launched(Record):
    """Initial state of a launched engine."""

    sizes: Annotated[Any, C(POINTER(Sizes))]
    engine: Annotated[Any, C(POINTER(Engine))]
    buffer: Annotated[Any, C(POINTER(TimedWord))]


_Launcher = CFUNCTYPE(c_int32, c_uint32, POINTER(c_uint32), c_uint32, c_uint64, POINTER(Launched))


@cache
def _library() -> ctypes.CDLL:
    room = Path(memory.model.device_model.__file__).parent
    library = compile_model(
        "chip/chip.cpp",
        (CHIP, AXI_MEMORY),
        includes=[room / name for name in DEVICE_SOURCES],
        generated={
            "vault.inc": vault_constants(),
            "network.inc": network_constants(),
            "control.inc": control_constants(),
            "launched.inc": declared({}, declarations(Launched)),
        },
        functions={
            "vip_timed_chip_new": (
                c_void_p,
                POINTER(ChipSizes),
                POINTER(NetworkSizes),
                POINTER(VaultSizes),
                POINTER(AxiSizes),
                POINTER(LineSizes),
                POINTER(HostSizes),
                POINTER(RegisterMap),
                _Launcher,
            ),
            "vip_timed_chip_expect": (None, c_void_p, c_uint64, c_bool),
            "vip_timed_chip_run": (c_bool, c_void_p, c_uint64, c_uint32, c_int64),
            "vip_timed_chip_waited": (c_int64, c_void_p),
            "vip_timed_chip_end": (None, c_void_p),
        },
    )
    # This also opens the devices.
    DeviceModel(library)
    return library


class ChipModel(ChipSession):
    """The timing model of a chip, with the same cycles and counters as its Verilog.

    The host's accesses to registers and to the DRAM take their time.

    Parameters:
        config, image, axi_latency: see :class:`sim_tb.cosim.chip.ChipSession`.
        threads: number of threads that share the vaults' work; None: one per processor available to
            this process. Fewer work while other processes occupy the processors. Results do not
            depend on it.
        progress: called periodically with the cycles so far.

    Attributes:
        threads: at most one per vault.

    Raises:
        CosimError: as for :class:`ChipSession`; or the model does not support ``config``, or
            another is open.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """

    _opened = False

    def __init__(
        self,
        config: ChipConfig,
        image: DramImage,
        *,
        threads: int | None = None,
        progress: Callable[[int], None] | None = None,
        axi_latency: int = AXI_LATENCY,
    ) -> None:
        super().__init__(config, image, axi_latency=axi_latency)
        check_covered(config.pe)
        if config.tile.clocks.two:
            raise CosimError("the timing model has one clock (clocks.domains must be 'one')")
        processors = len(os.sched_getaffinity(0)) if threads is None else threads
        self.threads = max(1, min(processors, config.vaults))
        self._workers = Workers(self.threads)
        self._progress = progress
        self._chip: c_void_p | None = None
        self._states: dict[int, tuple[EngineState, Any, Sizes, Any]] = {}
        # Programs for the model, by their words: most engines have the same program.
        self._programs: dict[tuple[int, ...], Any] = {}
        self._failure: BaseException | None = None
        self._launcher = _Launcher(self._launch)

    def _start(self) -> None:
        # The library has only one host and one set of devices.
        if ChipModel._opened:
            raise CosimError("one chip at a time runs on the timing model")
        config, library = self.config, _library()
        vault = config.tile.vault
        self._library = Library(library)
        self._chip = library.vip_timed_chip_new(
            byref(
                ChipSizes(
                    engines=config.tile.pes,
                    instruction_words=config.pe.instruction_words,
                    threads=self.threads,
                    requesters=config.tile.requesters,
                    joined=config.remote and config.vaults > 1,
                    window_bits=config.pe.address_bits if config.tile.windows else _WHOLE,
                )
            ),
            byref(network := NetworkSizes(config.network, requesters=config.tile.pes + 1)),
            *(
                (None, byref(AxiSizes.of(vault)))
                if isinstance(vault, AxiConfig)
                else (byref(VaultSizes.of(config.tile.dram, config.tile.requesters)), None)
            ),
            byref(LineSizes.of(config.tile)),
            byref(HostSizes.of(config)),
            byref(registers := RegisterMap(config)),
            self._launcher,
        )
        # C++ points into their tables.
        self._held = (network, registers)
        ChipModel._opened = True

    def __exit__(self, *_: object) -> None:
        self._library.library.vip_timed_chip_end(self._chip)
        self._chip = None
        ChipModel._opened = False

    def _perform(self, operation: Operation) -> Result:
        if self._chip is None:
            raise CosimError("the chip's session is not open, or has failed")
        started = time.perf_counter()
        library = self._library
        operation.start(library)
        if operation.kind is Kind.RUN:
            library.library.vip_timed_chip_expect(self._chip, operation.count, operation.stop)
        while not self._run_on():
            if self._progress is not None:
                self._progress(operation.progress(library))
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return operation.result(library, time.perf_counter() - started)

    def _run_on(self) -> bool:
        """Let some cycles pass; returns whether the host's operation has ended."""
        library, workers = self._library.library, self._workers
        threads = workers.choose(time.perf_counter())
        cycles = _AT_ONCE if threads == self.threads else _ON_FEWER
        ended: bool = library.vip_timed_chip_run(self._chip, cycles, threads, _PATIENCE)
        if waited := library.vip_timed_chip_waited(self._chip):
            workers.waited(time.perf_counter(), waited * 1e-9)
        return ended

    def _launch(self, pe: int, program: Any, words: int, parameters: int, launched: Any) -> int:
        """Called from C++ for an engine that starts."""
        try:
            config, before = self.config.pe, self._states.get(pe)
            content = tuple(program[:words])
            state = self._state_of(pe, content, parameters)
            if content not in self._programs:
                decoded = timed_words(content, state.rows, config)
                self._programs[content] = (TimedWord * words)(*decoded)
            buffer = before[1] if before else (TimedWord * config.instruction_words)()
            # The words after the program are left from earlier programs.
            ctypes.memmove(buffer, self._programs[content], ctypes.sizeof(self._programs[content]))
            sizes, engine = sizes_of(config, words), state.engine
            self._states[pe] = (state, buffer, sizes, engine)
            launched[0].sizes = ctypes.pointer(sizes)
            launched[0].engine = ctypes.pointer(engine)
            launched[0].buffer = buffer
        except BaseException as error:
            # An exception can't pass through C++.
            self._failure = error
            return 1
        return 0

    def _state_of(self, pe: int, words: Sequence[int], parameters: int) -> EngineState:
        """The state of an engine at its start, with the scratchpad that the previous run left."""
        vault, slot = divmod(pe, self.config.tile.pes)
        identity = EngineIdentity(pe, vault, slot, self.config.pes)
        before = self._states.get(pe)
        return EngineState(
            words,
            self.image,
            # In a window, each engine appears to be the only one.
            **(ALONE if self.config.tile.windows else identity)._asdict(),
            parameters=parameters,
            scratchpad=bytes(before[0].scratchpad) if before else None,
            **self.config.pe.limits,
        )
