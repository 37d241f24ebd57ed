"""Runs of programs that trimming learns from: on the simulator for data, on hardware for cycles."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from hdl.config import PeConfig
from isa.image import DramImage
from sim_tb.trim_check import Measured, Workload, measure
from synth.profile import InFlight, Profile, profile_run

__all__ = ["Observed", "observe"]

#: Instructions after which a profiled run is given up.
_LIMIT = 200_000_000


@dataclass(frozen=True, kw_only=True)
class Observed:
    """A workload with what was seen of it on the full engine.

    Attributes:
        profile: for :func:`synth.trim.trim`. measured: the run on hardware, for
            :func:`sim_tb.trim_check.check_trimmed`; None: there was none.
    """

    work: Workload
    profile: Profile
    measured: Measured | None


def observe(
    work: Workload,
    full: PeConfig,
    *,
    hardware: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Observed:
    """Profile ``work`` on the engine of ``full``.

    Parameters:
        hardware: whether to run it in cosimulation too, which tells how many transfers are in
            flight at once.
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
    measured = measure(work, full, progress)
    if measured.in_flight is not None:
        entries, requests = measured.in_flight
        profile = replace(profile, in_flight=InFlight(arc_entries=entries, requests=requests))
    return Observed(work=work, profile=profile, measured=measured)
