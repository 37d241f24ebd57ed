"""Runs jobs, caches the results on disk, and refuses wrong outputs."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, TypeVar

from isa.run import RunResult
from microkernels.runtime.job import KernelJob, KernelOutcome
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import launches_key, run_on
from sim_tb.cosim.machine import Timed
from sim_tb.dut.engine import configuration_verilog
from sim_tb.harness.memory import MemoryBehaviour
from sim_tb.runner.cache import fingerprint
from sim_tb.timed.library import sources
from soc.generate.designs import Configuration
from soc.generate.presets import configuration_json
from support.cache import ResultCache
from vip.energy import work

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
        folder: of the cache.
        on: the Verilog of ``config``, or its timing model.
        also: everything else that the result depends on.
    """
    if on == "model":
        return ResultCache(folder).get(model_key(config, job, also), measure)
    key = fingerprint(also, configuration_verilog(config), launches_key(job))
    return ResultCache(folder).get(key, measure)


@dataclass(frozen=True, kw_only=True)
class LaunchRun:
    """A launch on all engines of a machine, or several one after the other.

    Attributes:
        cycles: of the slowest engine of each. tck_ns: clock period.
        counters: name of :class:`pe.interface.PeCounter` -> its sum over all engines.
        vaults: name of a counter of :attr:`isa.run.RunResult.vaults` -> its sum over all vaults.
        gbs: bandwidth of all DRAM in GB/s.
        simulated: cycles so far, including the host's work. seconds: host time that they took.
        processors: number of processors used.
        engines: that worked.
        host_cycles: additional cycles in which a chip's host loads and launches the program and
            detects its end; 0 without a chip.
        work: of engines and memories, as of :func:`vip.energy.work`; empty without counters.
        operations, updates: of the work, as of :class:`microkernels.runtime.job.KernelJob`; 0:
            not counted.
    """

    cycles: int
    tck_ns: float
    counters: Mapping[str, int]
    gbs: float
    simulated: int
    seconds: float
    processors: int
    vaults: Mapping[str, int] = field(default_factory=dict)
    engines: int = 0
    host_cycles: int = 0
    work: Mapping[str, int] = field(default_factory=dict)
    operations: int = 0
    updates: int = 0

    @property
    def ms(self) -> float:
        """Time of all cycles."""
        return self.cycles * self.tck_ns / 1e6

    @property
    def ms_with_host(self) -> float:
        """Time of all cycles, with those of the host."""
        return (self.cycles + self.host_cycles) * self.tck_ns / 1e6

    @property
    def gops(self) -> float:
        """Operations, in 10**9 per second."""
        return self.operations / (self.cycles * self.tck_ns)

    @property
    def intensity(self) -> float:
        """Operations per byte of memory; 0 without memory traffic."""
        return self.gops / self.gbs if self.gbs else 0.0

    @property
    def bus_busy(self) -> float:
        """Share of cycles in which a vault's data bus moves data."""
        return self.vaults["BUS_BUSY"] / self.vaults["CYCLES"]

    def share(self, *counters: str) -> float:
        """Fraction of all engines' cycles that ``counters`` count together."""
        return sum(self.counters[name] for name in counters) / self.counters["CYCLES"]


def together(runs: Iterable[LaunchRun]) -> LaunchRun:
    """Launches, at least one, one after the other."""
    each = list(runs)
    cycles = sum(run.cycles for run in each)
    return replace(
        each[-1],
        cycles=cycles,
        counters=_summed([run.counters for run in each]),
        vaults=_summed([run.vaults for run in each]),
        host_cycles=sum(run.host_cycles for run in each),
        work=_summed([run.work for run in each]),
        gbs=sum(run.gbs * run.cycles for run in each) / cycles,
    )


def _summed(counters: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(one[name] for one in counters) for name in counters[0]} if counters else {}


def _launch_run(config: Configuration, result: RunResult) -> LaunchRun:
    host = result.loading + result.host_cycles
    return LaunchRun(
        cycles=result.cycles,
        tck_ns=result.tck_ns,
        counters=_summed(result.counters),
        vaults=_summed(result.vaults),
        gbs=result.gbs,
        simulated=result.simulated_cycles,
        seconds=result.seconds,
        processors=len(os.sched_getaffinity(0)),
        engines=len(result.engines),
        host_cycles=host - result.cycles if host else 0,
        work=work(config, result) if result.counters else {},
    )


def stored_runs(config: Configuration, outcome: KernelOutcome) -> dict[str, Any]:
    """The launches of a job that has run on ``config``, as plain data for :func:`cached`."""
    return {name: asdict(_launch_run(config, run)) for name, run in outcome.results.items()}


def runs_of(stored: Mapping[str, Any]) -> dict[str, LaunchRun]:
    """The inverse of :func:`stored_runs`."""
    return {name: LaunchRun(**run) for name, run in stored.items()}


def launch_runs(
    job: KernelJob,
    config: Configuration,
    name: str,
    *,
    on: Timed = "model",
    memory: MemoryBehaviour | None = None,
) -> dict[str, LaunchRun]:
    """Run a job on all engines of a machine, compare its outputs, and return the runs by launch.
    Results are cached on disk.

    Parameters:
        on, memory: see :func:`sim_tb.cosim.machine.open_machine`.

    Raises:
        CosimError: an engine faulted, or an output differs from the golden model's; the message has
            ``name``.
        support.native.CompilerError: the timing model can't be built.
        sim_tb.runner.build.BuildError: the simulator of the Verilog can't be built.
    """

    also = "" if memory is None else repr(memory)

    def measure() -> dict[str, Any]:
        # How long engines wait for each other depends on where in a refresh interval they start.
        outcome = exact(run_on(job, config, on=on, preload=True, memory=memory), name)
        return stored_runs(config, outcome)

    return runs_of(cached("runs", config, job, measure, on=on, also=also))


def model_key(config: Configuration, job: KernelJob, also: str = "") -> str:
    """The cache key of a run of a job with its data on the timing model of ``config``."""
    machine = repr(sorted(configuration_json(config).items()))
    model = [path.read_bytes() for path in sources()]
    return fingerprint(also, machine, launches_key(job), *model)
