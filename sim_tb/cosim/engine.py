"""Cosimulation of one processing engine: runs programs on its Verilog and returns their final
state."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hdl.ports import COLUMN_BYTES
from isa.image import DramImage
from isa.program import Program, still_running
from isa.run import Launch, Machine, RunError, RunResult
from isa.table import REGISTER_WIDTH
from pe.config import PeConfig
from pe.interface import PeState
from pe.scratchpad import read_roles
from sim_tb.dut.engine import TOP, engine_design
from sim_tb.dut.top import trace_format
from sim_tb.harness.engine import ALONE, NEVER, EngineIdentity, HostJob, HostResult, Outcome
from sim_tb.harness.memory import MemoryBehaviour
from sim_tb.runner.build import build
from sim_tb.runner.session import Session

__all__ = [
    "CosimError",
    "MemoryBehaviour",
    "PeSimulation",
    "TooLong",
    "WasReset",
    "check_launch",
    "check_start",
    "stop_cycles",
]


#: A working engine completes issued instructions within this many times their expected cycles.
_PATIENCE = 4
_PATIENCE_FLOOR = 100_000


class CosimError(RunError):
    """A run that did not end as it must; the message says why."""


class TooLong(CosimError):
    """A run, or an access of the host, that did not end within its cycles."""


class WasReset(CosimError):
    """A run that ended with the reset for which it had asked."""


def _within(name: str, value: int, high: int) -> None:
    if not 0 <= value <= high:
        raise CosimError(f"{name} must be from 0 to {high}, not {value}")


def check_launch(launch: Launch, config: PeConfig) -> None:
    """Refuse a launch that does not fit an engine of ``config``.

    Raises:
        CosimError: the message says what does not fit.
    """
    _within("parameters", launch.parameters, (1 << 64) - 1)
    if launch.stop_after is not None:
        _within("stop_after", launch.stop_after, NEVER)
    words = launch.program.words
    if len(words) > config.instruction_words:
        raise CosimError(
            f"a program of {len(words)} words does not fit the instruction buffer of "
            f"{config.instruction_words}"
        )
    if config.program is not None and words != config.program:
        raise CosimError("the engine has another program built in")
    if not 1 <= launch.max_cycles < 2**63:
        raise CosimError(f"max_cycles must be from 1 to 2**63 - 1, not {launch.max_cycles}")


def check_start(config: PeConfig, scratchpad: bytes | None, identity: EngineIdentity) -> None:
    """Refuse scratchpad contents, or a place in a chip, that an engine of ``config`` can't take.

    Raises:
        CosimError: the message says why.
    """
    for name, value in identity._asdict().items():
        _within(name, value, (1 << 16) - 1)
    if scratchpad is None:
        return
    if config.sram != "behavioural":
        raise CosimError(f"scratchpad contents can't be given to {config.sram} memories")
    if len(scratchpad) != config.scratchpad_bytes:
        raise CosimError(
            f"scratchpad contents of {len(scratchpad)} bytes given for one of "
            f"{config.scratchpad_bytes}"
        )


def stop_cycles(config: PeConfig, memory: MemoryBehaviour) -> int:
    """Upper bound on the cycles that an engine takes after a stop to complete its instructions: a
    transfer of the whole scratchpad for each entry of its array range check, with a margin."""
    requests = config.arc_entries * config.scratchpad_bytes // COLUMN_BYTES
    rounds = requests // config.load_store_queue + 1
    waiting = rounds * (memory.latency + memory.extra_latency)
    moving = requests * COLUMN_BYTES // 8 * 256 / memory.bandwidth
    chance = (1 - memory.stall) * (1 - memory.gap)
    return _PATIENCE_FLOOR + _PATIENCE * (waiting + int(moving / chance))


class PeSimulation(Machine):
    """A simulator of one engine.

    Parameters:
        config: of the engine.
        trace: file for the waveforms of all runs, ``.vcd`` or ``.fst`` (building its simulator
            needs the headers of lz4 and zlib); as VCD 700 bytes per cycle, at a third of the speed.
        ports_only: waveforms hold only the engine's ports (:mod:`sim_tb.waves.cycles`).
            Without a ``trace`` the same simulator is used, so that only one is built.
        memory: behaviour of the memory unless a run has its own; None: the default.
        netlist: Verilog of the engine after mapping; "": the Verilog of ``config``.
        watched: results have :attr:`isa.run.EngineEnd.in_flight`, and launches may have limits; see
            :func:`sim_tb.dut.engine.engine_design`.

    Raises:
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """

    config: PeConfig
    lenient = True
    _session: Session

    def __init__(
        self,
        config: PeConfig,
        *,
        trace: Path | None = None,
        ports_only: bool = False,
        memory: MemoryBehaviour | None = None,
        netlist: str = "",
        watched: bool = False,
    ) -> None:
        self.config = config
        self._behaviour = memory or MemoryBehaviour()
        self._sizes = (config.arc_entries, config.load_store_queue) if watched else None
        form = trace_format(trace) or ("vcd" if ports_only else "")
        design = engine_design(
            config, form, netlist=netlist, ports_only=ports_only, watched=watched
        )
        self._session = Session(build(design), TOP, trace=trace)

    def run_many(
        self, jobs: Iterable[HostJob], progress: Callable[[int], None] | None = None
    ) -> Iterator[RunResult | CosimError]:
        """Run ``jobs`` (:meth:`job`) in order and yield the result or the error of each.

        Jobs are taken a few ahead of the results: don't reuse a job's image before its result.

        Parameters:
            progress: called periodically with the cycles of the current job.

        Raises:
            CosimError: a job that can't be run.
            sim_tb.runner.session.SessionError: the simulator ended by itself.
        """
        running: list[HostJob] = []

        def handed_over() -> Iterator[HostJob]:
            for job in jobs:
                running.append(job)
                yield job

        for result in self._session.run_many(handed_over(), progress):
            job = running.pop(0)
            yield self._result(result, job.words, job.max_cycles)

    def run(
        self,
        launch: Launch,
        image: DramImage,
        *,
        engines: int | None = None,
        progress: Callable[[int], None] | None = None,
        **surroundings: Any,
    ) -> RunResult:
        """Run one launch on the only engine; ``surroundings`` as for :meth:`job`, ``progress`` as
        for :meth:`run_many`.

        Raises:
            CosimError: as for :meth:`job` and :meth:`run_many`.
        """
        job = self.job(launch, image, **surroundings)
        (ended,) = self._session.run_many([job], progress)
        result = self._result(ended, launch.program, launch.max_cycles)
        if isinstance(result, CosimError):
            raise result
        return result

    def job(
        self,
        launch: Launch,
        image: DramImage,
        *,
        memory: MemoryBehaviour | None = None,
        identity: EngineIdentity = ALONE,
        reset: bool = True,
        reset_after: int = NEVER,
        scratchpad: bytes | None = None,
    ) -> HostJob:
        """The job of one launch.

        Parameters:
            launch: ``limits`` only for a ``watched`` simulation.
            image: the memory, of the size of the engine's address space; the engine changes it.
            memory: behaviour of the memory; None: the simulation's.
            identity: of the engine.
            reset: reset the engine first; otherwise it continues from the state of the previous
                job.
            reset_after: cycles from the job's begin, with its loading, to a reset that ends it; its
                result is then :class:`WasReset`.
            scratchpad: contents of the scratchpad at the start, for an engine with ``behavioural``
                memories; None: unchanged.

        Raises:
            CosimError: a launch that does not fit the engine.
        """
        check_launch(launch, self.config)
        check_start(self.config, scratchpad, identity)
        if launch.limits is not None:
            if self._sizes is None:
                raise CosimError("limits can only be given to a watched engine")
            for name, limit, size in zip(
                ("entries", "tags"), launch.limits, self._sizes, strict=True
            ):
                if not 1 <= limit <= size:
                    raise CosimError(f"limits: {name} must be from 1 to {size}, not {limit}")
        behaviour = memory or self._behaviour
        return HostJob(
            words=launch.program.words,
            memory=str(image.path.absolute()),
            behaviour=behaviour,
            reset=reset,
            parameters=launch.parameters,
            max_cycles=launch.max_cycles,
            stop_cycles=stop_cycles(self.config, behaviour),
            identity=identity,
            scratchpad=scratchpad,
            sizes=self._sizes,
            limits=launch.limits,
            reset_after=reset_after,
            stop_after=NEVER if launch.stop_after is None else launch.stop_after,
        )

    def _result(
        self, result: HostResult, program: Program | Sequence[int], max_cycles: int
    ) -> RunResult | CosimError:
        reasons = {
            # Verilog shows the fetch address, a few words ahead of execution.
            Outcome.TOO_LONG: still_running("the program", max_cycles, "cycle"),
            Outcome.HUNG: f"the engine hangs: still {PeState(result.state).name.lower()} after "
            f"{max_cycles} cycles and a stop",
            Outcome.VIOLATION: f"memory port rule broken: {result.violation}",
            Outcome.IN_FLIGHT: "the engine says that it has ended, with memory requests in flight",
        }
        if result.outcome is Outcome.WAS_RESET:
            return WasReset("the engine was reset")
        if result.outcome is not Outcome.ENDED:
            late = result.outcome in (Outcome.TOO_LONG, Outcome.HUNG)
            return (TooLong if late else CosimError)(reasons[result.outcome])
        readable = self.config.sram == "behavioural"
        # A scratchpad that nothing reads has no outputs and is not emitted.
        pad = bool(read_roles(self.config))
        if readable and not (result.registers and (result.scratchpad or not pad)):
            return CosimError("the memories of the simulated engine are not where they should be")
        end = result.end(program, self.config)
        end = replace(
            end,
            counters={
                **end.counters,
                **(result.history if self.config.load_history else {}),
            },
            registers=[self._whole(value) for value in result.registers],
            scratchpad=result.scratchpad,
            in_flight=result.in_flight,
        )
        return RunResult(
            engines=(end,), simulated_cycles=result.cycles, seconds=result.wall_seconds
        )

    def _whole(self, value: int) -> int:
        """The 64-bit pattern of a register of any width."""
        sign = 1 << (self.config.register_width - 1)
        return ((value ^ sign) - sign) % (1 << REGISTER_WIDTH)
