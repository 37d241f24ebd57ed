"""Memory-memory vectors and their reductions against a vector register file (thesis 7.2.2)."""

from collections.abc import Callable, Iterator, Mapping

from microkernels.runtime.job import KernelJob
from microkernels.vector_registers.belief import belief_job
from microkernels.vector_registers.convolution import FILTERS, convolution_job
from microkernels.vector_registers.machine import MACHINES
from soc.generate.presets import tile_preset

from .harness.experiment import SIMULATION, Measurement, experiment, say
from .harness.runs import launch_runs

_JOBS: Mapping[str, tuple[Callable[[str], KernelJob], Callable[[KernelJob], int]]] = {
    "belief": (belief_job, lambda job: job.updates or 0),
    "convolution": (convolution_job, lambda job: job.expected.size // FILTERS),
}


@experiment(presets=("vault",), tools=SIMULATION[:1], minutes=1)
def ablation() -> Iterator[Measurement]:
    """Belief propagation and a convolution on machines with a vector register file (thesis 7.2.2).

    A vault's engines on the timing model, outputs exact. For each machine: engine cycles of a
    message or pixel, beats of the vector unit, which are the cycles if issue never waits, and both
    as multiples of VIP's.
    """
    tile = tile_preset("vault")
    for work, (make, count) in _JOBS.items():
        base: dict[str, float] = {}
        for machine in MACHINES:
            say(f"{work}, {machine}")
            job = make(machine)
            (run,) = launch_runs(job, tile, f"{work}, {machine}").values()
            beats = run.counters["VECTOR_BUSY"] / count(job)
            for name, value in (("cycles", run.cycles * job.pes / count(job)), ("beats", beats)):
                key = f"{work}_{machine}_{name}"
                factor = value / base.setdefault(name, value)
                yield Measurement(key, value, "cycles", 0.01)
                yield Measurement(f"{key}_factor", factor, "", 0.01)
