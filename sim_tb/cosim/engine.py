"""Cosimulation of one processing engine: programs run on its Verilog, with their final state.

:func:`run_pe` runs one program. :class:`PeSimulation` keeps the simulator for many of them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import TracebackType

from isa.faults import FaultCause
from isa.image import DramImage
from isa.program import Program
from isa.table import REGISTER_WIDTH
from pe.config import PeConfig
from pe.interface import PeCounter, PeState
from pe.scratchpad import read_roles
from sim_tb.dut.engine import TOP, build_engine
from sim_tb.harness.engine import NEVER, HostJob, HostResult, Outcome
from sim_tb.harness.memory import MemoryBehaviour
from sim_tb.runner.session import Session
from support.errors import VipError

__all__ = [
    "CosimError",
    "CosimResult",
    "Identity",
    "Job",
    "MemoryBehaviour",
    "PeSimulation",
    "check_job",
    "run_many",
    "run_pe",
    "stop_cycles",
]


#: Bytes of a memory request at most.
_COLUMN_BYTES = 32
#: A healthy engine completes issued instructions in this many times the cycles that they should
#: take.
_PATIENCE = 4
_PATIENCE_FLOOR = 100_000


class CosimError(VipError):
    """A run that did not end as a run must; the message says why."""


def _within(name: str, value: int, high: int) -> None:
    if not 0 <= value <= high:
        raise CosimError(f"{name} must be from 0 to {high}, not {value}")


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Place of the simulated engine in a chip, as its program sees it; each 0..65535.

    Raises:
        CosimError: a value outside its range.
    """

    pe_index: int = 0
    vault: int = 0
    slot: int = 0
    pe_count: int = 1

    def __post_init__(self) -> None:
        for item in fields(self):
            _within(item.name, getattr(self, item.name), (1 << 16) - 1)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One program to run.

    Attributes:
        words: the program, at most the engine's instruction buffer.
        image: the memory; the engine changes it. Give it the size of the engine's address space.
        max_cycles: a program that runs longer is an error.
        memory: how the memory answers.
        parameters: DRAM address of the parameter block, 0..2**64 - 1.
        identity: of the engine.
        reset: reset the engine before; otherwise it goes on in the state that the job before left.
        scratchpad: contents of the scratchpad at the start, for an engine with ``behavioural``
            memories; None: unchanged.
        stop_after: the host stops the engine so many cycles after the launch, 0 or more, if it
            still runs; None: it does not.
        limits: entries of the array range check, and memory requests in flight, that the engine of
            a ``watched`` simulation may use, each at least 1; None: all that it has.

    Raises:
        CosimError: ``parameters`` or ``stop_after`` outside its range.
    """

    words: Sequence[int]
    image: DramImage
    max_cycles: int
    memory: MemoryBehaviour = field(default_factory=MemoryBehaviour)
    parameters: int = 0
    identity: Identity = field(default_factory=Identity)
    reset: bool = True
    scratchpad: bytes | None = None
    stop_after: int | None = None
    limits: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        _within("parameters", self.parameters, (1 << 64) - 1)
        if self.stop_after is not None:
            _within("stop_after", self.stop_after, NEVER)


def check_job(job: Job, config: PeConfig) -> None:
    """Refuse a job that does not fit an engine of ``config``.

    Raises:
        CosimError: the message says what does not fit.
    """
    if len(job.words) > config.instruction_words:
        raise CosimError(
            f"a program of {len(job.words)} words does not fit the instruction buffer of "
            f"{config.instruction_words}"
        )
    if config.program is not None and tuple(job.words) != config.program:
        raise CosimError("the engine has another program built in")
    if job.scratchpad is not None and config.sram != "behavioural":
        raise CosimError(f"scratchpad contents can't be given to {config.sram} memories")
    if job.scratchpad is not None and len(job.scratchpad) != config.scratchpad_bytes:
        raise CosimError(
            f"scratchpad contents of {len(job.scratchpad)} bytes given for one of "
            f"{config.scratchpad_bytes}"
        )
    if not 1 <= job.max_cycles < 2**63:
        raise CosimError(f"max_cycles must be from 1 to 2**63 - 1, not {job.max_cycles}")


def stop_cycles(config: PeConfig, memory: MemoryBehaviour) -> int:
    """Cycles after a stop in which an engine beside ``memory`` surely completes its instructions:
    a transfer of the whole scratchpad for each entry of its ARC, with some patience."""
    requests = config.arc_entries * config.scratchpad_bytes // _COLUMN_BYTES
    rounds = requests // config.load_store_queue + 1
    waiting = rounds * (memory.latency + memory.extra_latency)
    moving = requests * _COLUMN_BYTES // 8 * 256 / memory.bandwidth
    chance = (1 - memory.stall) * (1 - memory.gap)
    return _PATIENCE_FLOOR + _PATIENCE * (waiting + int(moving / chance))


@dataclass(frozen=True, kw_only=True)
class CosimResult:
    """Result and final state of a program.

    Attributes:
        state: ``HALTED`` or ``FAULTED``.
        cause, pc: of a fault; ``pc`` means nothing without one.
        memory_error: memory answered an access with an error, whatever ``cause`` says.
        cycles: from launch to end as the host sees it, so with the engine's start-up and the wait
            for its units; the counter ``CYCLES`` has the program's own.
        counters: by name of :class:`pe.interface.PeCounter` and, with a load history and
            ``behavioural`` memories, of :class:`pe.interface.HistoryCounter`.
        registers: 64-bit patterns; empty unless the engine's ``sram`` is ``behavioural``.
        scratchpad: all its bytes; likewise.
        wall_seconds: simulation time on this machine, loading included.
        in_flight: entries of the array range check, and memory requests, in use at once, as far as
            that decides whether anything waits; None unless the simulation is ``watched``.
    """

    state: PeState
    cause: FaultCause
    pc: int
    cycles: int
    counters: dict[str, int]
    registers: list[int]
    scratchpad: bytes
    wall_seconds: float
    in_flight: tuple[int, int] | None = None
    memory_error: bool = False

    @property
    def cycles_per_second(self) -> float:
        """Simulated cycles per second."""
        return self.cycles / self.wall_seconds


class PeSimulation:
    """A simulator of one engine, to be used in a ``with`` statement.

    Parameters:
        config: of the engine.
        trace: file for the waveforms of all runs, ``.vcd`` or ``.fst`` (needs the headers of lz4
            and zlib to be built); 700 bytes a cycle as VCD, at a third of the speed.
        ports_only: they hold the engine's ports alone (:mod:`sim_tb.runner.port_trace`). Without a
            ``trace`` the simulator is the one that writes them as VCD, so that it is built once.
        watched: results have :attr:`CosimResult.in_flight`, and jobs may have limits; see
            :func:`sim_tb.dut.engine.engine_design`.

    Raises:
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """

    def __init__(
        self,
        config: PeConfig,
        *,
        trace: Path | None = None,
        ports_only: bool = False,
        watched: bool = False,
    ) -> None:
        self.config = config
        self._sizes = (config.arc_entries, config.load_store_queue) if watched else None
        form = "vcd" if ports_only else ""
        if trace is not None:
            form = trace.suffix.lstrip(".") or "?"
        folder = build_engine(config, form, ports_only=ports_only, watched=watched)
        self._session = Session(folder, TOP, trace=trace)

    def __enter__(self) -> "PeSimulation":
        self._session.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._session.__exit__(kind, error, traceback)

    def run_many(
        self, jobs: Iterable[Job], progress: Callable[[int], None] | None = None
    ) -> Iterator[CosimResult | CosimError]:
        """Run ``jobs`` in order and yield for each its result, or the error that it met.

        A few jobs are taken from ``jobs`` ahead of the results, so an image that one uses is not
        free before its result is there.

        Parameters:
            progress: called now and then with the cycles of the job that runs.

        Raises:
            CosimError: a job that can't be run.
            sim_tb.runner.session.SessionError: the simulator ended by itself.
        """
        limits: list[int] = []

        def handed_over() -> Iterator[HostJob]:
            for job in jobs:
                limits.append(job.max_cycles)
                yield self._host_job(job)

        for result in self._session.run_many(handed_over(), progress):
            yield self._result(result, limits.pop(0))

    def run(self, job: Job, progress: Callable[[int], None] | None = None) -> CosimResult:
        """Run one job.

        Raises:
            CosimError: as described there.
        """
        (result,) = self.run_many([job], progress)
        if isinstance(result, CosimError):
            raise result
        return result

    def _host_job(self, job: Job) -> HostJob:
        check_job(job, self.config)
        if job.limits is not None:
            if self._sizes is None:
                raise CosimError("limits can only be given to a watched engine")
            for name, limit, size in zip(("entries", "tags"), job.limits, self._sizes, strict=True):
                if not 1 <= limit <= size:
                    raise CosimError(f"limits: {name} must be from 1 to {size}, not {limit}")
        identity = job.identity
        return HostJob(
            words=tuple(job.words),
            memory=str(job.image.path.absolute()),
            behaviour=job.memory,
            reset=job.reset,
            parameters=job.parameters,
            max_cycles=job.max_cycles,
            stop_cycles=stop_cycles(self.config, job.memory),
            identity=(identity.pe_index, identity.vault, identity.slot, identity.pe_count),
            scratchpad=job.scratchpad,
            sizes=self._sizes,
            limits=job.limits,
            stop_after=NEVER if job.stop_after is None else job.stop_after,
        )

    def _result(self, result: HostResult, max_cycles: int) -> CosimResult | CosimError:
        reasons = {
            Outcome.TOO_LONG: f"the program did not end within {max_cycles} cycles",
            Outcome.HUNG: f"the engine hangs: still {PeState(result.state).name.lower()} after "
            f"{max_cycles} cycles and a stop",
            Outcome.VIOLATION: f"memory port rule broken: {result.violation}",
            Outcome.IN_FLIGHT: "the engine says that it has ended, with memory requests in flight",
        }
        if result.outcome is not Outcome.ENDED:
            return CosimError(reasons[result.outcome])
        readable = self.config.sram == "behavioural"
        # A scratchpad that nothing reads has no outputs, and is not emitted.
        pad = bool(read_roles(self.config))
        if readable and not (result.registers and (result.scratchpad or not pad)):
            return CosimError("the memories of the simulated engine are not where they should be")
        return CosimResult(
            state=PeState(result.state),
            cause=FaultCause(result.cause),
            pc=result.pc,
            cycles=result.cycles,
            counters={
                **{item.name: result.counters[item] for item in PeCounter},
                **(result.history if self.config.load_history else {}),
            },
            registers=[self._whole(value) for value in result.registers],
            scratchpad=result.scratchpad,
            wall_seconds=result.wall_seconds,
            in_flight=result.in_flight,
            memory_error=result.memory_error,
        )

    def _whole(self, value: int) -> int:
        """The 64-bit pattern of a register of the engine, whatever its width."""
        sign = 1 << (self.config.register_width - 1)
        return ((value ^ sign) - sign) % (1 << REGISTER_WIDTH)


def run_pe(
    program: Program,
    image: DramImage,
    *,
    config: PeConfig,
    max_cycles: int,
    memory: MemoryBehaviour | None = None,
    parameters: int = 0,
    identity: Identity | None = None,
    scratchpad: bytes | None = None,
    trace: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> CosimResult:
    """Run one program on the Verilog of one engine, fresh from reset, and return its final state.

    The first run of a configuration builds its simulator (half a minute); see
    :mod:`sim_tb.runner.build` for where that is cached. Parameters are those of :class:`Job` and
    :class:`PeSimulation`; ``progress`` is called now and then with the cycles so far.

    Raises:
        CosimError: the program does not fit, does not end within ``max_cycles``, or the engine
            breaks a rule of its memory port.
        sim_tb.runner.build.BuildError: the simulator can't be built.
        sim_tb.runner.session.SessionError: the simulator ended by itself.
    """
    job = Job(
        words=program.words,
        image=image,
        max_cycles=max_cycles,
        memory=memory or MemoryBehaviour(),
        parameters=parameters,
        identity=identity or Identity(),
        scratchpad=scratchpad,
    )
    with PeSimulation(config, trace=trace) as simulation:
        return simulation.run(job, progress)


def run_many(jobs: Iterable[Job], *, config: PeConfig) -> list[CosimResult | CosimError]:
    """Run ``jobs`` one after the other in one simulator; for each its result or its error."""
    with PeSimulation(config) as simulation:
        return list(simulation.run_many(jobs))
