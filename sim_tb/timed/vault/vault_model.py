"""The timing model of a vault with its engines, with the interface of its cosimulation."""

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_bool, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import memory.model.device_model
from isa.compiled.library import Engine
from isa.faults import FaultCause
from isa.image import DramImage
from isa.program import Program
from memory.config import VaultConfig
from memory.controller.counters import (
    LAG_CYCLES,
    VaultCounter,
)
from memory.model.device_model import DEVICE_SOURCES, DeviceModel, device_setup
from pe.interface import PeCounter
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.vault import (
    SETTLE_CYCLES,
    WINDOW_CYCLES,
    PeResult,
    VaultResult,
    check_alone,
    launched_engines,
    named_counters,
)
from sim_tb.harness.trace import TRACE_WORD
from sim_tb.timed.engine.engine_state import (
    EngineResult,
    EngineState,
    Sizes,
    check_covered,
    sizes_of,
)
from sim_tb.timed.library import compile_model
from sim_tb.timed.words import TimedWord, timed_words
from soc.tile.config import VaultTileConfig

from .line_sizes import LineSizes
from .vault_sizes import COUNTERS, VaultSizes, vault_constants

__all__ = [
    "StartedTile",
    "VaultModel",
    "run_vault_model",
    "started_tile",
]

#: Cycles between two looks at signals.
_AT_ONCE = 1 << 18
_WHOLE = 64


@cache
def _library() -> ctypes.CDLL:
    room = Path(memory.model.device_model.__file__).parent
    return compile_model(
        "vault/tile.cpp",
        others=[*(room / name for name in DEVICE_SOURCES), TRACE_WORD],
        generated={"vault.inc": vault_constants()},
        functions={
            "vip_tile_start": (
                c_void_p,
                POINTER(Sizes),
                POINTER(VaultSizes),
                POINTER(LineSizes),
                POINTER(POINTER(Engine)),
                c_uint64,
                POINTER(TimedWord),
                c_uint64,
                c_uint32,
            ),
            "vip_tile_run": (c_bool, c_void_p, c_uint64),
            "vip_tile_trace": (
                c_uint64,
                c_void_p,
                c_uint64,
                POINTER(c_uint64),
                c_uint64,
            ),
            "vip_tile_idle": (None, c_void_p, c_uint64),
            "vip_tile_counters": (None, c_void_p, POINTER(c_uint64)),
            "vip_tile_engine": (None, c_void_p, c_uint64, POINTER(EngineResult)),
            "vip_tile_end": (None, c_void_p),
        },
    )


class VaultModel:
    """The timing model of a vault, with the methods of :class:`sim_tb.cosim.vault.VaultSimulation`.

    Parameters:
        config: of the vault.
    """

    def __init__(self, config: VaultTileConfig) -> None:
        self.config = config

    def __enter__(self) -> "VaultModel":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing is open."""

    def run(
        self,
        program: Program,
        image: DramImage,
        *,
        max_cycles: int,
        active: int | None = None,
        parameters: int = 0,
        progress: Callable[[int], None] | None = None,
    ) -> VaultResult:
        """Run a program; parameters and exceptions as of :func:`run_vault_model`."""
        return run_vault_model(
            program,
            image,
            config=self.config,
            max_cycles=max_cycles,
            active=active,
            parameters=parameters,
            progress=progress,
        )


def run_vault_model(
    program: Program,
    image: DramImage,
    *,
    config: VaultTileConfig,
    max_cycles: int,
    active: int | None = None,
    parameters: int = 0,
    progress: Callable[[int], None] | None = None,
) -> VaultResult:
    """:func:`sim_tb.cosim.vault.run_vault` on the timing model: the cycles of the Verilog, with the
    same counters of every engine and the same commands to the DRAM.

    The vault's counters ``CYCLES``, ``REFRESHES`` and ``REFRESH_BLOCKED`` cover the same interval
    to within :data:`memory.controller.counters.LAG_CYCLES`.

    Raises:
        CosimError: as there, or the model does not cover ``config``.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    with started_tile(
        program,
        image,
        config=config,
        max_cycles=max_cycles,
        active=active,
        parameters=parameters,
    ) as tile:
        return _result(tile, max_cycles, progress)


class StartedTile(NamedTuple):
    """A vault whose engines have been launched.

    Attributes:
        library: with its functions. pointer: for these. engines: launched.
        device: the DRAM. config: of the vault. since: when it was started, in seconds.
    """

    library: ctypes.CDLL
    pointer: int
    engines: int
    device: DeviceModel
    config: VaultTileConfig
    since: float


@contextmanager
def started_tile(
    program: Program,
    image: DramImage,
    *,
    config: VaultTileConfig,
    max_cycles: int,
    active: int | None = None,
    parameters: int = 0,
) -> Iterator[StartedTile]:
    """The model of a vault, whose engines begin with ``program``.

    Raises:
        CosimError: as of :func:`run_vault_model`, but for what happens after the launch.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    check_alone(config)
    engines = launched_engines(
        program, config, active=active, parameters=parameters, max_cycles=max_cycles
    )
    check_covered(config.pe)
    if not isinstance(config.vault, VaultConfig):
        raise CosimError("the timing model has no AXI back end")
    started = time.perf_counter()
    library = _library()
    device = DeviceModel(library)
    device.open(0, str(image.path.absolute()), device_setup(config.dram))
    states = [
        EngineState(
            program,
            image,
            pe_index=0 if config.windows else slot,
            slot=0 if config.windows else slot,
            pe_count=1 if config.windows else config.pes,
            parameters=parameters,
            **config.pe.limits,
        )
        for slot in range(engines)
    ]
    buffer = (TimedWord * config.pe.instruction_words)()
    buffer[: len(program.words)] = timed_words(program.words, states[0].rows, config.pe)
    held = [state.engine for state in states]
    pointers = (POINTER(Engine) * engines)(*(ctypes.pointer(each) for each in held))
    sizes, vault_sizes = (
        sizes_of(config.pe, len(program.words)),
        VaultSizes.of(config.dram, config.requesters),
    )
    bits = config.pe.address_bits if config.windows else _WHOLE
    tile = library.vip_tile_start(
        byref(sizes),
        byref(vault_sizes),
        byref(LineSizes.of(config)),
        pointers,
        engines,
        buffer,
        bits,
        WINDOW_CYCLES,
    )
    try:
        yield StartedTile(library, tile, engines, device, config, started)
    finally:
        library.vip_tile_end(tile)


def _result(
    started: StartedTile, max_cycles: int, progress: Callable[[int], None] | None
) -> VaultResult:
    """Run till all engines end."""
    library, tile, engines, device, config, since = started
    done = 0
    while library.vip_tile_run(tile, min(_AT_ONCE, max_cycles - done)):
        done += min(_AT_ONCE, max_cycles - done)
        if done == max_cycles:
            raise CosimError(_late(library, tile, engines, max_cycles))
        if progress is not None:
            progress(done)
    library.vip_tile_idle(tile, LAG_CYCLES)
    counters = (c_uint64 * COUNTERS)()
    library.vip_tile_counters(tile, counters)
    library.vip_tile_idle(tile, SETTLE_CYCLES)
    if violation := device.violation(0):
        raise CosimError(f"DRAM rule broken: {violation}")
    return VaultResult(
        pes=tuple(_engine(library, tile, slot) for slot in range(engines)),
        counters={item.name: counters[item] for item in named_counters(config)},
        latencies=tuple(counters[VaultCounter.LATENCY_0 :]),
        commands=device.counts(0),
        windows=device.recorded(0),
        tck_ns=config.dram.timing.tck_ns,
        wall_seconds=time.perf_counter() - since,
    )


def _late(library: ctypes.CDLL, tile: int, engines: int, max_cycles: int) -> str:
    """The engines that have faulted, and the first that still runs."""
    result = EngineResult()
    faults, late = [], ""
    for slot in range(engines):
        library.vip_tile_engine(tile, slot, byref(result))
        if result.running:
            late = late or f"engine {slot} did not end within {max_cycles} cycles"
        elif result.cause:
            name = FaultCause(result.cause).name
            faults.append(f"engine {slot} faulted at word {result.pc}: {name}")
    return "; ".join([*faults, late])


def _engine(library: ctypes.CDLL, tile: int, slot: int) -> PeResult:
    result = EngineResult()
    library.vip_tile_engine(tile, slot, byref(result))
    cause = FaultCause(result.cause)
    return PeResult(
        slot=slot,
        state=result.state(),
        cause=cause,
        pc=result.pc,
        memory_error=result.memory_error,
        cycles=result.cycles,
        counters={item.name: result.counters[item] for item in PeCounter},
    )
