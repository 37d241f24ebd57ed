"""Runs jobs, caches the results on disk, and refuses wrong outputs."""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeVar

from isa.run import RunResult
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import launches_key, run_on
from sim_tb.cosim.machine import Timed
from sim_tb.dut.engine import configuration_verilog
from sim_tb.runner.cache import ResultCache, fingerprint
from sim_tb.timed.library import sources
from soc.generate.designs import Configuration
from soc.generate.generate import configuration_json

#: Counters of cycles in which an instruction waits for memory, or for another engine's flag in it.
MEMORY_WAITS = (
    *("STALL_REGISTER", "STALL_FENCE", "STALL_ARC_CONFLICT", "STALL_ARC_FULL"),
    "STALL_LOAD_STORE",
)


class _Outcome(Protocol):
    @property
    def match(self) -> bool: ...


_T = TypeVar("_T", bound=_Outcome)


def exact(outcome: _T, name: str) -> _T:
    """``outcome``, if it has the golden model's outputs.

    Raises:
        CosimError: the outputs differ; the message has ``name``.
    """
    if not outcome.match:
        raise CosimError(f"{name}: outputs differ from the golden model's")
    return outcome


def cached(
    folder: str,
    config: Configuration,
    job: KernelJob,
    measure: Callable[[], Any],
    *,
    on: Timed,
    also: str = "",
) -> Any:
    """The result of ``measure``, cached for a job with its data on a machine.

    Parameters:
        folder: of the cache. on: the Verilog of ``config``, or its timing model.
        also: everything else that the result depends on.
    """
    if on == "model":
        return ResultCache(folder).get(model_key(config, job, also), measure)
    key = fingerprint(also, configuration_verilog(config), launches_key(job))
    return ResultCache(folder).get(key, measure)


@dataclass(frozen=True, kw_only=True)
class LaunchRun:
    """A launch on all engines of a machine.

    Attributes:
        cycles: of the slowest engine. tck_ns: clock period.
        counters: name of :class:`pe.interface.PeCounter` -> its sum over all engines.
        gbs: bandwidth of all DRAM in GB/s.
        simulated: cycles so far, including the host's work. seconds: host time that they took.
        processors: number of processors used.
    """

    cycles: int
    tck_ns: float
    counters: Mapping[str, int]
    gbs: float
    simulated: int
    seconds: float
    processors: int

    def share(self, *counters: str) -> float:
        """Fraction of all engines' cycles that ``counters`` count together."""
        return sum(self.counters[name] for name in counters) / self.counters["CYCLES"]


def _launch_run(result: RunResult) -> LaunchRun:
    return LaunchRun(
        cycles=result.cycles,
        tck_ns=result.tck_ns,
        counters={name: sum(pe[name] for pe in result.counters) for name in result.counters[0]},
        gbs=result.gbs,
        simulated=result.simulated_cycles,
        seconds=result.seconds,
        processors=len(os.sched_getaffinity(0)),
    )


def launch_runs(
    job: KernelJob, config: Configuration, name: str, *, on: Timed = "model"
) -> dict[str, LaunchRun]:
    """Run a job on all engines of a machine, compare its outputs, and return the runs by launch.
    Results of the timing model are cached on disk.

    Raises:
        CosimError: an engine faulted, or an output differs from the golden model's; the message has
            ``name``.
        support.native.CompilerError: the timing model can't be built.
        sim_tb.runner.build.BuildError: the simulator of the Verilog can't be built.
    """

    def measure() -> dict[str, Any]:
        # How long engines wait for each other depends on where in a refresh interval they start.
        outcome = exact(run_on(job, config, on=on, preload=True), name)
        return {launch: asdict(_launch_run(run)) for launch, run in outcome.results.items()}

    runs = measure() if on == "rtl" else cached("launch_runs", config, job, measure, on=on)
    return {launch: LaunchRun(**run) for launch, run in runs.items()}


def model_key(config: Configuration, job: KernelJob, also: str = "") -> str:
    """The cache key of a run of a job with its data on the timing model of ``config``."""
    machine = repr(sorted(configuration_json(config).items()))
    model = [path.read_bytes() for path in sources()]
    return fingerprint(also, machine, launches_key(job), *model)
