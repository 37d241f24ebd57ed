"""Cosimulation of a vault with its engines: one program on all of them.

Engines and the memory that they share are Verilog, the DRAM is a model that checks every command.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from hdl.ports import COLUMN_BYTES
from isa.faults import FaultCause
from isa.image import DramImage
from isa.program import Program
from memory.controller.counters import LAG_CYCLES, LATENCY_LIMITS, VaultCounter
from memory.line_buffer.layout import LineCounter
from memory.model.device_model import device_setup
from pe.interface import PeCounter, PeState
from sim_tb.dut.tile import TOP, build_tile
from sim_tb.harness.engine import HostJob, HostResult, Outcome
from sim_tb.harness.tile import TileJob, TileResult
from sim_tb.runner.session import Session
from soc.tile.config import VaultTileConfig

from .engine import CosimError

__all__ = [
    "SETTLE_CYCLES",
    "WINDOW_CYCLES",
    "PeResult",
    "VaultResult",
    "VaultSimulation",
    "check_alone",
    "launched_engines",
    "named_counters",
    "run_vault",
]

#: Cycles of each interval for which the DRAM's traffic is reported.
WINDOW_CYCLES = 256

#: Cycles after which a write that was acknowledged is in the DRAM.
SETTLE_CYCLES = 256
#: Cycles in which an engine surely completes, after ``stop``, the instructions that it has issued.
_STOP = 1_000_000


@dataclass(frozen=True, kw_only=True)
class PeResult:
    """Result of a program on one engine.

    Attributes:
        slot: of the engine.
        state: ``HALTED`` or ``FAULTED``.
        cause, pc: of a fault; ``pc`` means nothing without one.
        memory_error: memory answered an access with an error, whatever ``cause`` says.
        cycles: from launch to end as the host sees it.
        counters: by name of :class:`pe.interface.PeCounter`.
    """

    slot: int
    state: PeState
    cause: FaultCause
    pc: int
    cycles: int
    counters: dict[str, int]
    memory_error: bool = False


@dataclass(frozen=True, kw_only=True)
class VaultResult:
    """Result of a program on a vault.

    Attributes:
        pes: of the engines launched, by slot.
        counters: of the vault, by name of :class:`memory.controller.counters.VaultCounter` and,
            with a line buffer, :class:`memory.line_buffer.layout.LineCounter`, from
            launch to :data:`memory.controller.counters.LAG_CYCLES` after the last engine's end. Two
            reads of ``CYCLES`` and ``REFRESHES`` give a time each to within that.
        latencies: requests by cycles from arrival to column command: those below each of
            :data:`memory.controller.counters.LATENCY_LIMITS`, and those beyond.
        commands: given to the DRAM since reset, by name, and ``cycles``.
        windows: columns read and written in each :data:`WINDOW_CYCLES` from launch on, by the cycle
            of their command; the last ones lie after the end.
        tck_ns: clock period.
        wall_seconds: simulation time on this machine, loading included.
    """

    pes: tuple[PeResult, ...]
    counters: dict[str, int]
    latencies: tuple[int, ...]
    commands: Mapping[str, int]
    windows: tuple[tuple[int, int], ...]
    tck_ns: float
    wall_seconds: float

    @property
    def cycles(self) -> int:
        """Cycles from launch to the end of the last engine."""
        return max(pe.cycles for pe in self.pes)

    @property
    def bytes_moved(self) -> int:
        """Bytes of the columns read and written; partly used columns count whole."""
        return COLUMN_BYTES * (self.counters["READS"] + self.counters["WRITES"])

    @property
    def gbs(self) -> float:
        """Mean bandwidth of the DRAM from launch to the end of the last engine, in GB/s."""
        return self.bytes_moved / (self.cycles * self.tck_ns)

    @property
    def row_hits(self) -> float:
        """Share of the requests that found their row open; 0 without requests."""
        served = self.counters["READS"] + self.counters["WRITES"]
        return self.counters["ROW_HITS"] / served if served else 0.0

    @property
    def cycles_per_second(self) -> float:
        """Simulated cycles per second."""
        return self.commands["cycles"] / self.wall_seconds


def check_alone(config: VaultTileConfig) -> None:
    """Whether a vault runs without the chip around it.

    Raises:
        CosimError: it has two clocks, or a preload memory, which nobody fills without a host.
    """
    if config.clocks.two:
        raise CosimError(
            "a vault alone runs with one clock (clocks.domains must be 'one'); a chip may have two"
        )
    if config.vault.preload_bytes:
        raise CosimError(
            "the host of a chip fills a preload memory; a vault alone has none (preload_bytes must "
            "be 0)"
        )


def launched_engines(
    program: Program,
    config: VaultTileConfig,
    *,
    active: int | None,
    parameters: int,
    max_cycles: int,
) -> int:
    """Number of engines that a run of :func:`run_vault` launches.

    Raises:
        CosimError: a value outside its range, or a program that does not fit.
    """
    engines = config.pes if active is None else active
    if not 1 <= engines <= config.pes:
        raise CosimError(f"{engines} engines can't be launched in a vault of {config.pes}")
    if len(program.words) > config.pe.instruction_words:
        raise CosimError(
            f"a program of {len(program.words)} words does not fit the instruction buffer of "
            f"{config.pe.instruction_words}"
        )
    if not 0 <= parameters < 2**64:
        raise CosimError(f"parameters must be from 0 to 2**64 - 1, not {parameters}")
    if not 1 <= max_cycles < 2**63:
        raise CosimError(f"max_cycles must be from 1 to 2**63 - 1, not {max_cycles}")
    return engines


class VaultSimulation:
    """The simulator of a vault, which runs one program after the other, each fresh from reset; to
    be used in a ``with`` statement.

    Parameters:
        config, trace: as of :func:`run_vault`; the waveforms are those of all runs.

    Raises:
        CosimError: as of :func:`check_alone`.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """

    def __init__(self, config: VaultTileConfig, *, trace: Path | None = None) -> None:
        check_alone(config)
        self.config = config
        folder = build_tile(config, trace.suffix.lstrip(".") or "?" if trace else "")
        self._session = Session(folder, TOP, trace=trace)

    def __enter__(self) -> "VaultSimulation":
        self._session.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._session.__exit__(kind, error, traceback)

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
        """Run a program; parameters and exceptions as of :func:`run_vault`."""
        engines = launched_engines(
            program, self.config, active=active, parameters=parameters, max_cycles=max_cycles
        )
        host = HostJob(
            words=tuple(program.words),
            parameters=parameters,
            max_cycles=max_cycles,
            stop_cycles=_STOP,
        )
        job = TileJob(
            host=host,
            memory=str(image.path.absolute()),
            setup=device_setup(self.config.dram),
            engines=engines,
            lag=LAG_CYCLES,
            settle=SETTLE_CYCLES,
            window=WINDOW_CYCLES,
        )
        (found,) = self._session.run_many([job], progress)
        return _result(found, self.config, max_cycles)


def run_vault(
    program: Program,
    image: DramImage,
    *,
    config: VaultTileConfig,
    max_cycles: int,
    active: int | None = None,
    parameters: int = 0,
    trace: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> VaultResult:
    """Run one program on engines of a vault, fresh from reset, and return its result.

    All engines are loaded with it and launched in the same cycle; the program identifies its engine
    by the start registers (:mod:`isa.launch`): the vault has index 0 and is alone in its chip. The
    first run of a configuration builds its simulator (about a minute).

    Parameters:
        program: at most the engines' instruction buffer.
        image: the memory, of the vault's size; the engines change it.
        config: of the vault and its engines.
        max_cycles: an engine that runs longer is an error.
        active: engines launched, from slot 0 on; None: all. The others stay idle.
        parameters: DRAM address of the parameter block.
        trace: waveform file, ``.vcd`` or ``.fst``.
        progress: called now and then with the cycles so far.

    Raises:
        CosimError: the program does not fit, an engine does not end within ``max_cycles``, the
            controller breaks a rule of the DRAM, or there are not so many engines.
        sim_tb.runner.build.BuildError: the simulator can't be built.
        sim_tb.runner.session.SessionError: the simulator ended by itself.
    """
    with VaultSimulation(config, trace=trace) as simulation:
        return simulation.run(
            program,
            image,
            max_cycles=max_cycles,
            active=active,
            parameters=parameters,
            progress=progress,
        )


def _result(found: TileResult, config: VaultTileConfig, max_cycles: int) -> VaultResult:
    if found.violation:
        raise CosimError(f"DRAM rule broken: {found.violation}")
    reasons = {
        Outcome.TOO_LONG: f"did not end within {max_cycles} cycles",
        Outcome.HUNG: f"hangs: still running after {max_cycles} cycles and a stop",
    }
    late = [
        f"engine {slot} {reasons[engine.outcome]}"
        for slot, engine in enumerate(found.engines)
        if engine.outcome is not Outcome.ENDED
    ]
    if late:
        # One that waits for another which has faulted is not to blame.
        faults = [
            f"engine {slot} faulted at word {engine.pc}: {FaultCause(engine.cause).name}"
            for slot, engine in enumerate(found.engines)
            if PeState(engine.state) is PeState.FAULTED
        ]
        raise CosimError("; ".join([*faults, late[0]]))
    counters = found.counters
    first = int(VaultCounter.LATENCY_0)
    return VaultResult(
        pes=tuple(_engine(slot, engine) for slot, engine in enumerate(found.engines)),
        counters={item.name: counters[item] for item in named_counters(config)},
        latencies=counters[first : first + len(LATENCY_LIMITS) + 1],
        commands=found.commands,
        windows=found.windows,
        tck_ns=config.dram.timing.tck_ns,
        wall_seconds=found.wall_seconds,
    )


def named_counters(config: VaultTileConfig) -> list[VaultCounter | LineCounter]:
    """The counters of a vault of ``config`` but for the histogram of latencies."""
    return [
        *(item for item in VaultCounter if item < VaultCounter.LATENCY_0),
        *(LineCounter if config.line_buffer else ()),
    ]


def _engine(slot: int, engine: HostResult) -> PeResult:
    return PeResult(
        slot=slot,
        state=PeState(engine.state),
        cause=FaultCause(engine.cause),
        pc=engine.pc,
        memory_error=engine.memory_error,
        cycles=engine.cycles,
        counters={item.name: engine.counters[item] for item in PeCounter},
    )
