"""Belief propagation on full HD, whole, on every engine of a chip: the timing model's cycles.

The problem is that of the Motorcycle pair at 640 x 360 pixels, each pixel standing for 3 x 3 of
full HD, with 16 labels of 16 bits. Every message of every run is compared with the golden model's.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial

from isa.run import RunResult
from microkernels.bp.jobs import bp_job, bp_levels_job
from microkernels.data.stereo import motorcycle
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import VaultRing
from pe.interface import PeCounter
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import launches_key, run_on
from sim_tb.runner.cache import Kept, fingerprint
from sim_tb.timed.library import sources
from soc.chip.config import ChipConfig
from soc.generate.generate import configuration_json

__all__ = ["FULL_HD", "MEMORY_WAITS", "RUNS", "Phase", "full_hd_job", "measure_full_hd"]

#: Pixels across and down.
FULL_HD = (1920, 1080)
_LABELS = 16
#: Counters of cycles in which an instruction waits for memory, or for another engine's flag there.
MEMORY_WAITS = (
    *("STALL_REGISTER", "STALL_FENCE", "STALL_ARC_CONFLICT", "STALL_ARC_FULL"),
    "STALL_LOAD_STORE",
)
#: Run -> iterations on the coarse level, None: on the fine level alone, and on the fine level.
RUNS: Mapping[str, tuple[int | None, int]] = {
    "flat": (None, 1),
    "levels": (1, 1),
    "flat_eight": (None, 8),
    "levels_five": (5, 5),
}


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A launch on all engines of a chip.

    Attributes:
        name: of the launch. iterations: of BP-M in it; 1 of other kernels.
        cycles: of the engine that ran longest. tck_ns: clock period.
        shares: part of all engines' cycles that each counter of
            :class:`pe.interface.PeCounter` has, but for those that count no cycles.
        gbs: bandwidth of all DRAM, in GB/s. flits: that crossed a link.
        simulated: cycles so far, with the host's work. seconds: that they took on this machine,
        processors: on so many at once.
    """

    name: str
    iterations: int
    cycles: int
    tck_ns: float
    shares: Mapping[str, float]
    gbs: float
    flits: int
    simulated: int
    seconds: float
    processors: int

    @property
    def ms(self) -> float:
        """Time of an iteration, or of the kernel."""
        return self.cycles / self.iterations * self.tck_ns / 1e6


def full_hd_job(
    name: str, config: ChipConfig, *, width: int = FULL_HD[0], height: int = FULL_HD[1]
) -> KernelJob:
    """The job of a run of :data:`RUNS`.

    Parameters:
        name: of the run.
        config: of the chip.
        width, height: of the image in pixels.

    Raises:
        KernelError: tiles that don't fit their vault.
    """
    coarse, fine = RUNS[name]
    network = config.network
    make = bp_job if coarse is None else partial(bp_levels_job, coarse_iterations=coarse)
    return make(
        motorcycle(width, height, _LABELS).problem,
        iterations=fine,
        ring=VaultRing(
            columns=network.columns, rows=network.rows, address_bits=network.address_bits
        ),
        pes=config.tile.pes,
        scratchpad_bytes=config.pe.scratchpad_bytes,
    )


def measure_full_hd(
    name: str,
    config: ChipConfig,
    *,
    width: int = FULL_HD[0],
    height: int = FULL_HD[1],
    progress: Callable[[int], None] | None = None,
) -> list[Phase]:
    """Run one of :data:`RUNS` on the timing model of a chip; results are cached on disk.

    Parameters:
        name, config, width, height: as of :func:`full_hd_job`.
        progress: called now and then with the cycles so far.

    Raises:
        CosimError: an engine faulted, or a message differs from the golden model's.
        support.native.CompilerError: the timing model can't be built.
    """
    job = full_hd_job(name, config, width=width, height=height)
    texts = [path.read_bytes() for path in sources()]
    machine = repr(sorted(configuration_json(config).items()))
    key = fingerprint(name, machine, launches_key(job), *texts)
    found = Kept("full_hd").get(key, lambda: _measured(name, job, config, progress))
    return [Phase(**phase) for phase in found]


def _measured(
    name: str, job: KernelJob, config: ChipConfig, progress: Callable[[int], None] | None
) -> list[dict[str, object]]:
    outcome = run_on(job, config, on="model", preload=True, progress=progress)
    if not outcome.match:
        raise CosimError(f"{job.name}: {outcome.differing} message elements differ")
    coarse, fine = RUNS[name]
    iterations = {"coarse": coarse or 1, "fine": fine, "": fine}
    return [
        asdict(_phase(launch or "fine", iterations.get(launch, 1), result))
        for launch, result in outcome.results.items()
    ]


def _phase(name: str, iterations: int, result: RunResult) -> Phase:
    cycles = sum(pe["CYCLES"] for pe in result.counters)
    counted = [
        counter.name
        for counter in PeCounter
        if counter not in (PeCounter.CYCLES, PeCounter.BYTES_LOADED, PeCounter.BYTES_STORED)
    ]
    return Phase(
        name=name,
        iterations=iterations,
        cycles=result.program_cycles,
        tck_ns=result.tck_ns,
        shares={item: sum(pe[item] for pe in result.counters) / cycles for item in counted},
        gbs=result.gbs,
        flits=result.flits,
        simulated=result.simulated_cycles,
        seconds=result.seconds,
        processors=len(os.sched_getaffinity(0)),
    )
