"""The timing model of a vault with its engines, with the interface of its cosimulation."""

import ctypes
import time
from collections.abc import Callable
from ctypes import POINTER, byref, c_bool, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import get_args

import memory.model.device_model
from isa.compiled.library import Engine
from isa.faults import FaultCause
from isa.image import DramImage
from isa.program import Program
from memory.address_map import BYTE_BITS, DramAddress, join_address
from memory.config import PagePolicy, SchedulerPolicy, VaultConfig
from memory.controller.bus_rules import read_to_write, write_to_read
from memory.controller.counters import (
    ARRIVAL_UNIT_BITS,
    LAG_CYCLES,
    LATENCY_LIMITS,
    VaultCounter,
)
from memory.controller.dram_port import DramCommand
from memory.controller.read_path import buffered_columns
from memory.controller.responses import ACKNOWLEDGEMENTS
from memory.controller.starvation import FORCED_DEBT, GROUP_BURSTS, PATIENCE_CYCLES
from memory.controller.transaction import ARRIVAL_BITS, stamp_bits
from memory.controller.write_path import pending_writes
from memory.line_buffer.layout import LineCounter
from memory.model.device_model import DEVICE_SOURCES, DeviceModel, device_setup
from memory.timing import BURST_CLOCKS
from pe.interface import PeCounter
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.vault import (
    SETTLE_CYCLES,
    WINDOW_CYCLES,
    PeResult,
    VaultResult,
    launched_engines,
    named_counters,
)
from sim_tb.timed.engine.engine_state import (
    EngineResult,
    EngineState,
    Sizes,
    check_covered,
    sizes_of,
)
from sim_tb.timed.library import compile_model
from sim_tb.timed.words import TimedWord, declared, timed_words
from soc.tile.config import VaultTileConfig

from .agent_sizes import AgentSizes, agent_constants
from .line_sizes import LineSizes

__all__ = ["VaultModel", "VaultSizes", "run_vault_model", "vault_constants"]

_POLICIES: tuple[str, ...] = get_args(PagePolicy)
_SCHEDULERS: tuple[str, ...] = get_args(SchedulerPolicy)
_COUNTERS = int(VaultCounter.LATENCY_0) + len(LATENCY_LIMITS) + 1
#: Cycles between two looks at signals.
_AT_ONCE = 1 << 18
_WHOLE = 64
_TIMES = ("tccd", "tcl", "tcwl", "trcd", "trp", "tras", "trtp", "trfc", "trefi", "trrd", "tfaw")
#: Fields of a vault's sizes that are numbers.
_NUMBERS = (
    *("banks", "row_bits", "column_bits", "bank_bits", "address_bits"),
    *("row_low", "bank_low", "column_low"),
    *("page_policy", "scheduler", "transaction_queue", "command_queue", "write_slots"),
    *("stamp_bits", "read_columns", "write_depth"),
    *_TIMES,
    *("write_to_read", "write_to_precharge"),
    *("turnaround_to_read", "turnaround_to_write"),
    *("port_tag_bits", "tag_bits", "requester_bits"),
)


class VaultSizes(ctypes.Structure):
    """Parameters of a vault; see ``controller.h``."""

    _fields_ = (
        *((name, c_uint64) for name in _NUMBERS),
        ("agent", AgentSizes),
    )

    @classmethod
    def of(cls, config: VaultConfig, requesters: int) -> "VaultSizes":
        """Those of ``config``.

        Parameters:
            requesters: at the crossbar; 1 also without one.

        Raises:
            CosimError: the model has no window to an agent's weights, or no preload memory.
        """
        if config.preload_bytes:
            raise CosimError("the timing model has no preload memory (preload_bytes must be 0)")
        if config.agent.window_base is not None:
            raise CosimError(
                "the timing model has no window to an agent's weights (agent.window_base must be "
                "None)"
            )
        timing = config.timing

        def low(**one: int) -> int:
            fields = DramAddress(**({"row": 0, "bank": 0, "column": 0} | one))
            return int(join_address(config, fields)).bit_length() - 1

        assert low(column=1) >= BYTE_BITS
        return cls(
            banks=config.banks,
            row_bits=config.row_bits,
            column_bits=config.column_bits,
            bank_bits=config.bank_bits,
            address_bits=config.address_bits,
            row_low=low(row=1),
            bank_low=low(bank=1),
            column_low=low(column=1),
            page_policy=_POLICIES.index(config.page_policy),
            scheduler=_SCHEDULERS.index(config.scheduler),
            transaction_queue=config.transaction_queue,
            command_queue=config.command_queue,
            write_slots=config.write_slots,
            stamp_bits=stamp_bits(config),
            read_columns=buffered_columns(config),
            write_depth=pending_writes(config),
            **{name: getattr(timing, name) for name in _TIMES},
            write_to_read=timing.write_to_read,
            write_to_precharge=timing.write_to_precharge,
            turnaround_to_read=max(1, write_to_read(timing)),
            turnaround_to_write=max(1, read_to_write(timing)),
            port_tag_bits=config.tag_bits - (requesters - 1).bit_length(),
            tag_bits=config.tag_bits,
            requester_bits=config.requester_bits,
            agent=AgentSizes.of(config.agent),
        )


def vault_constants() -> str:
    """``vault.inc``: numbers of counters, and limits of the controller."""
    names = {item: item.name.title().replace("_", "") for item in VaultCounter}
    values = {f"Vault{name}": item.value for item, name in names.items()}
    values |= {item.name.title().replace("_", ""): item.value for item in LineCounter}
    values |= {
        "VaultCounters": _COUNTERS,
        "ForcedDebt": FORCED_DEBT,
        "PatienceCycles": PATIENCE_CYCLES,
        "GroupBursts": GROUP_BURSTS,
        "Acknowledgements": ACKNOWLEDGEMENTS,
        "BurstClocks": BURST_CLOCKS,
        "UnitBits": ARRIVAL_UNIT_BITS,
        "ArrivalBits": ARRIVAL_BITS,
        "LatencyLimits": len(LATENCY_LIMITS),
        **agent_constants(),
    }
    for policies in (_POLICIES, _SCHEDULERS):
        values |= {each.title().replace("-", ""): place for place, each in enumerate(policies)}
    kinds = ", ".join(f"k{kind.name.title()} = {kind.value}" for kind in DramCommand)
    limits = ", ".join(map(str, LATENCY_LIMITS))
    return declared(
        values,
        f"enum DramKind : uint32_t {{{kinds}}};",
        f"constexpr uint32_t kLimits[] = {{{limits}}};",
    )


@cache
def _library() -> ctypes.CDLL:
    room = Path(memory.model.device_model.__file__).parent
    return compile_model(
        "vault/tile.cpp",
        others=[room / name for name in DEVICE_SOURCES],
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
        isa.support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    engines = launched_engines(
        program, config, active=active, parameters=parameters, max_cycles=max_cycles
    )
    check_covered(config.pe)
    if not isinstance(config.vault, VaultConfig):
        raise CosimError("the timing model has no AXI back end")
    if config.clocks.two:
        raise CosimError("the timing model has one clock (clocks.domains must be 'one')")
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
        done = 0
        while library.vip_tile_run(tile, min(_AT_ONCE, max_cycles - done)):
            done += min(_AT_ONCE, max_cycles - done)
            if done == max_cycles:
                raise CosimError(_late(library, tile, engines, max_cycles))
            if progress is not None:
                progress(done)
        library.vip_tile_idle(tile, LAG_CYCLES)
        counters = (c_uint64 * _COUNTERS)()
        library.vip_tile_counters(tile, counters)
        library.vip_tile_idle(tile, SETTLE_CYCLES)
        if violation := device.violation(0):
            raise CosimError(f"DRAM rule broken: {violation}")
        results = tuple(_engine(library, tile, slot) for slot in range(engines))
    finally:
        library.vip_tile_end(tile)
    return VaultResult(
        pes=results,
        counters={item.name: counters[item] for item in named_counters(config)},
        latencies=tuple(counters[VaultCounter.LATENCY_0 :]),
        commands=device.counts(0),
        windows=device.recorded(0),
        tck_ns=config.dram.timing.tck_ns,
        wall_seconds=time.perf_counter() - started,
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
