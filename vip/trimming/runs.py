"""Runs of programs that are profiled for trimming, and the engines trimmed by them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from isa.image import DramImage
from isa.program import Program
from pe.config import PeConfig
from sim_tb.cosim.trim_check import Measured, Workload, measure
from synth.analysis.profile import InFlight, Profile, profile_run
from synth.analysis.trim import Known, TrimReport, report
from synth.errors import TrimError

__all__ = ["MOST_SLOWER", "SLOWER", "Observed", "demand", "moved", "observe", "proved_cut"]

#: More cycles that engines trimmed to the suite may take, as a fraction.
SLOWER = 0.01
#: Largest such fraction.
MOST_SLOWER = 0.5

#: Instructions after which a profiled run is given up.
_LIMIT = 200_000_000


@dataclass(frozen=True, kw_only=True)
class Observed:
    """A workload with the observations of its runs on the full engine.

    Attributes:
        profile: for :func:`synth.analysis.trim.trim`. measured: the run on hardware, for
            :func:`sim_tb.cosim.trim_check.check_trimmed`; None: there was none.
    """

    work: Workload
    profile: Profile
    measured: Measured | None


def observe(
    work: Workload,
    full: PeConfig,
    *,
    hardware: bool = True,
    slower: float = 0.0,
    progress: Callable[[int], None] | None = None,
) -> Observed:
    """Profile ``work`` on the engine of ``full``.

    Parameters:
        hardware: whether to run it in cosimulation too, which measures how many transfers are in
            flight at once.
        slower: more cycles that fewer transfers in flight may cost, as a fraction of the run's.
        progress: called now and then with the instructions, then cycles so far.

    Raises:
        TrimError, ProgramFaultError: the program faults, and may not.
        VipError: a run that can't be done or does not end.
    """
    with DramImage(1 << full.address_bits) as image:
        image.write(0, work.contents)
        profile = profile_run(
            work.program,
            image,
            full,
            parameters=work.parameters,
            limit=_LIMIT,
            may_fault=work.may_fault,
            progress=progress,
        )
    if not hardware:
        return Observed(work=work, profile=profile, measured=None)
    measured = measure(work, full, progress, slower=slower)
    if measured.in_flight is not None:
        entries, requests = measured.in_flight
        found = InFlight(arc_entries=entries, requests=requests, slower=slower)
        profile = replace(profile, in_flight=found)
    return Observed(work=work, profile=profile, measured=measured)


def moved(runs: Sequence[Observed]) -> int:
    """Bytes that the work of ``runs``, all on hardware with counters, loads and stores."""
    counted = [run.measured.result.counters for run in runs if run.measured is not None]
    return sum(counters["BYTES_LOADED"] + counters["BYTES_STORED"] for counters in counted)


def demand(runs: Sequence[Observed]) -> float:
    """Bytes a cycle that the full engine moves in ``runs``, all on hardware with counters."""
    counted = [run.measured.result.counters for run in runs if run.measured is not None]
    cycles = sum(counters["CYCLES"] for counters in counted)
    return moved(runs) / cycles if cycles else 0.0


def proved_cut(
    launches: Sequence[tuple[str, Program, Known]], full: PeConfig, runs: Sequence[Observed]
) -> TrimReport:
    """Trim ``full`` to launches: name, program, and what is known of it. ``runs`` are theirs, from
    which only the transfers in flight follow.

    Raises:
        TrimError: see :func:`synth.analysis.trim.trim`; or a size is not proved for every input.
    """
    cut = report(
        [program for _, program, _ in launches],
        full,
        names=[name for name, _, _ in launches],
        known=[known for _, _, known in launches],
        timed=[run.profile for run in runs],
    )
    for bound in cut.bounds:
        if bound.basis != "proved":
            raise TrimError(f"{bound.name} is not proved for every input: {bound.why}")
    return cut
