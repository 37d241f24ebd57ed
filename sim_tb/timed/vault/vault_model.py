"""The timing model of a vault with its engines, with the interface of its cosimulation, and of its
memory alone under traffic.

It also records the accesses that an engine makes to the vault's memory.
"""

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, byref, c_bool, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import NamedTuple

import memory.model.device_model
from isa.assembly.disassembler import located
from isa.compiled.library import Engine
from isa.image import DramImage
from isa.program import Program, still_running
from isa.run import EngineEnd, Launch, Machine, RunResult
from memory.config import VaultConfig
from memory.controller.counters import LAG_CYCLES
from memory.model.device_model import DEVICE_SOURCES, DeviceModel, device_setup
from memory.timing import DramTiming
from sim_tb.cosim.engine import CosimError, TooLong
from sim_tb.cosim.vault import (
    WINDOW_CYCLES,
    check_alone,
    fault_lines,
    launched_engines,
    vault_result,
)
from sim_tb.harness.engine import ALONE, EngineIdentity
from sim_tb.harness.models import SETTLE_CYCLES, Library
from sim_tb.harness.traffic import (
    REQUESTER,
    TRACE_WORD,
    TRAFFIC,
    WORD_BYTES,
    TrafficJob,
    TrafficResult,
)
from sim_tb.harness.traffic_runs import traffic_through
from sim_tb.timed.engine.engine_state import (
    EngineResult,
    EngineState,
    Sizes,
    TimedWord,
    check_covered,
    sizes_of,
    timed_words,
)
from sim_tb.timed.library import compile_model
from soc.tile.config import VaultTileConfig

from .vault_sizes import COUNTERS, LineSizes, VaultSizes, vault_constants

#: Sources of the DRAM's model.
_DEVICE = [Path(memory.model.device_model.__file__).with_name(name) for name in DEVICE_SOURCES]
#: Cycles between checks for signals.
_AT_ONCE = 1 << 18
_WHOLE = 64


@cache
def _library() -> ctypes.CDLL:
    return compile_model(
        "vault/tile.cpp",
        includes=[*_DEVICE, TRACE_WORD],
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


class VaultModel(Machine):
    """The timing model of a vault: the same cycles as its Verilog, the same counters of every
    engine and the same commands to the DRAM.

    The vault's counters ``CYCLES``, ``REFRESHES`` and ``REFRESH_BLOCKED`` cover the same interval
    to within :data:`memory.controller.counters.LAG_CYCLES`.

    Parameters:
        config: of the vault.
    """

    def __init__(self, config: VaultTileConfig) -> None:
        self.config = config

    def run(
        self,
        launch: Launch,
        image: DramImage,
        *,
        engines: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> RunResult:
        """Run a launch; see :meth:`sim_tb.cosim.vault.VaultSimulation.run`.

        Raises:
            CosimError: as for that method, or the model does not cover the vault.
            support.native.CompilerError: there is no C++ compiler, or it fails.
        """
        with started_tile(launch, image, config=self.config, engines=engines) as tile:
            return _result(tile, launch, progress)


class StartedTile(NamedTuple):
    """A vault whose engines have been launched.

    Attributes:
        library: with its functions. pointer: their argument. engines: those launched.
        device: the DRAM. config: of the vault. since: start time in seconds.
    """

    library: ctypes.CDLL
    pointer: int
    engines: int
    device: DeviceModel
    config: VaultTileConfig
    since: float


@contextmanager
def started_tile(
    launch: Launch,
    image: DramImage,
    *,
    config: VaultTileConfig,
    engines: int | None = None,
) -> Iterator[StartedTile]:
    """Start the model of a vault, whose engines begin with ``launch``.

    Raises:
        CosimError: as for :meth:`VaultModel.run`, except for errors after the launch.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    check_alone(config)
    count = launched_engines(launch, config, engines)
    check_covered(config.pe)
    if not isinstance(config.vault, VaultConfig):
        raise CosimError("the timing model has no AXI back end")
    started = time.perf_counter()
    library = _library()
    device = DeviceModel(library)
    device.open(0, str(image.path.absolute()), device_setup(config.dram))
    states = [
        EngineState(
            launch.program,
            image,
            **(ALONE if config.windows else EngineIdentity(slot, 0, slot, config.pes))._asdict(),
            parameters=launch.parameters,
            **config.pe.limits,
        )
        for slot in range(count)
    ]
    buffer = (TimedWord * config.pe.instruction_words)()
    words = launch.program.words
    buffer[: len(words)] = timed_words(words, states[0].rows, config.pe)
    structures = [state.engine for state in states]
    pointers = (POINTER(Engine) * count)(*map(ctypes.pointer, structures))
    sizes, vault_sizes = (
        sizes_of(config.pe, len(words)),
        VaultSizes.of(config.dram, config.requesters),
    )
    bits = config.pe.address_bits if config.windows else _WHOLE
    tile = library.vip_tile_start(
        byref(sizes),
        byref(vault_sizes),
        byref(LineSizes.of(config)),
        pointers,
        count,
        buffer,
        bits,
        WINDOW_CYCLES,
    )
    try:
        yield StartedTile(library, tile, count, device, config, started)
    finally:
        library.vip_tile_end(tile)


def _result(
    started: StartedTile, launch: Launch, progress: Callable[[int], None] | None
) -> RunResult:
    """Run until all engines end."""
    library, tile, engines, device, config, since = started
    done, max_cycles = 0, launch.max_cycles
    while library.vip_tile_run(tile, min(_AT_ONCE, max_cycles - done)):
        done += min(_AT_ONCE, max_cycles - done)
        if done == max_cycles:
            raise TooLong(_late(started, launch.program, max_cycles))
        if progress is not None:
            progress(done)
    library.vip_tile_idle(tile, LAG_CYCLES)
    counters = (c_uint64 * COUNTERS)()
    library.vip_tile_counters(tile, counters)
    library.vip_tile_idle(tile, SETTLE_CYCLES)
    if violation := device.violation(0):
        raise CosimError(f"DRAM rule broken: {violation}")
    return vault_result(
        tuple(_engine(started, launch.program, slot) for slot in range(engines)),
        config,
        counters=tuple(counters),
        commands=device.counts(0),
        windows=device.recorded(0),
        seconds=time.perf_counter() - since,
    )


def _late(started: StartedTile, program: Program, max_cycles: int) -> str:
    """Names the engines that have faulted, and the first that still runs."""
    ends = [_engine(started, program, slot) for slot in range(started.engines)]
    late = next(end for end in ends if end.state == "running")
    place = f"engine {late.slot}: {located(program, late.pc)}"
    return "; ".join([*fault_lines(ends), still_running(place, max_cycles, "cycle")])


def _engine(started: StartedTile, program: Program, slot: int) -> EngineEnd:
    result = EngineResult()
    started.library.vip_tile_engine(started.pointer, slot, byref(result))
    return result.end(program, started.config.pe, slot)


def record_trace(
    launch: Launch, image: DramImage, *, config: VaultTileConfig, accesses: int
) -> bytes:
    """The accesses of a vault's only engine until it ends, up to ``accesses``; see
    :attr:`sim_tb.harness.traffic.Pattern.trace`.

    Parameters:
        config: of the vault, with one engine.
        accesses: 1 or more; the recording also ends after the launch's ``max_cycles``.

    Raises:
        CosimError: as for :func:`started_tile`.
        ValueError: the vault has several engines.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    if config.pes != 1:
        raise ValueError(f"a trace records 1 engine, not {config.pes}")
    words = (c_uint64 * accesses)()
    with started_tile(launch, image, config=config) as tile:
        count = tile.library.vip_tile_trace(
            tile.pointer, launch.max_cycles, ctypes.cast(words, POINTER(c_uint64)), accesses
        )
    return bytes(memoryview(words).cast("B")[: count * WORD_BYTES])


@cache
def _memory_library() -> ctypes.CDLL:
    return compile_model(
        "../models/modelled_vault.cpp",
        (TRAFFIC, REQUESTER),
        includes=_DEVICE,
        generated={"vault.inc": vault_constants()},
        functions={
            "vip_modelled_vault_new": (c_void_p, POINTER(VaultSizes), c_uint32, c_uint32),
            "vip_modelled_vault_run": (c_bool, c_void_p, c_uint64),
            "vip_modelled_vault_end": (None, c_void_p),
        },
    )


def run_traffic_model(
    config: VaultConfig,
    requesters: int,
    jobs: Sequence[TrafficJob],
    *,
    dram: DramTiming | None = None,
) -> list[TrafficResult]:
    """:func:`sim_tb.harness.traffic_runs.run_traffic` on the timing model: same requesters, DRAM
    and checks, with the cycles of the Verilog.

    The counters ``CYCLES``, ``REFRESHES`` and ``REFRESH_BLOCKED`` cover the same interval to within
    :data:`memory.controller.counters.LAG_CYCLES`.

    Raises:
        TrafficError: as in that function.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """

    def perform(runs: Sequence[TrafficJob]) -> Iterator[TrafficResult]:
        tags = config.tag_bits - max(requesters - 1, 0).bit_length()
        library = _memory_library()
        vault = None
        try:
            for run in runs:
                started = time.perf_counter()
                models = Library(library)
                run.start(models)
                # The next run resets and continues it, as in Verilog.
                vault = vault or library.vip_modelled_vault_new(
                    byref(VaultSizes.of(config, max(requesters, 1))), requesters, 1 << tags
                )
                while not library.vip_modelled_vault_run(vault, _AT_ONCE):
                    pass
                yield run.result(models, time.perf_counter() - started)
        finally:
            if vault:
                library.vip_modelled_vault_end(vault)

    return traffic_through(perform, config, requesters, jobs, dram=dram)
