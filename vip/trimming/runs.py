"""Runs of programs on the full engine, and the engine that they and the proofs cut it down to."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from isa.image import DramImage
from pe.config import PeConfig
from sim_tb.cosim.trim_check import (
    Measured,
    ProgramFaultError,
    Workload,
    check_trimmed,
    measure,
)
from soc.tile.config import VaultTileConfig
from synth.analysis.profile import InFlight, Profile, profile_run
from synth.analysis.trim import TrimReport, profile_of_each, report
from synth.errors import TrimError
from vip.progress import Progress, counting

from .subjects import Launches, Loaded

__all__ = [
    "MOST_SLOWER",
    "SLOWER",
    "Checked",
    "EngineWork",
    "Observed",
    "Sizes",
    "cut_to",
    "demand",
    "moved",
    "observe",
    "proved_cut",
]

#: More cycles that engines trimmed to the suite may take, as a fraction.
SLOWER = 0.01
#: Largest such fraction.
MOST_SLOWER = 0.5

#: Instructions after which a profiled run is given up.
_LIMIT = 200_000_000


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The parts and sizes that a trimmed engine keeps.

    Attributes:
        basis: ``proved``: only sizes that are proved for all runs; ``runs``: those of the runs
            where nothing smaller is proved; ``tight``: those of the runs, even where a larger one
            is proved.
        profiles: of more runs.
        allow_uncovered: accept runs that do not cover all paths of the program.
        keep_counters: the performance counters stay.
        rom: the program, of which there must be one, is baked in.
        address_bits: of the memory; None: as many as the programs need.
        slower: more cycles that the runs may take with fewer transfers in flight, as a fraction,
            0 to 0.5.

    Raises:
        TrimError: ``slower`` is outside its range.
    """

    basis: Literal["proved", "runs", "tight"] = "runs"
    profiles: Sequence[Profile] = ()
    allow_uncovered: bool = False
    keep_counters: bool = False
    rom: bool = False
    address_bits: int | None = None
    slower: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.slower <= MOST_SLOWER:
            raise TrimError(f"slower must be a fraction from 0 to {MOST_SLOWER}, not {self.slower}")


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
        in_flight = InFlight(arc_entries=entries, requests=requests, slower=slower)
        profile = replace(profile, in_flight=in_flight)
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


def cut_to(
    programs: Sequence[Loaded],
    full: PeConfig,
    sizes: Sizes,
    profiles: Sequence[Profile] = (),
    timed: Sequence[Profile] = (),
) -> TrimReport:
    """Trim ``full`` to ``programs``.

    Parameters:
        profiles: of runs, beside those of ``sizes``; none count where only proved sizes are asked
            for. timed: of runs of which only the transfers in flight count.

    Raises:
        TrimError: see :func:`synth.analysis.trim.trim`.
    """
    return report(
        [subject.program for subject in programs],
        full,
        () if sizes.basis == "proved" else (*sizes.profiles, *profiles),
        names=[subject.name for subject in programs],
        known=[subject.known for subject in programs],
        timed=timed,
        keep_counters=sizes.keep_counters,
        rom=sizes.rom,
        allow_uncovered=sizes.allow_uncovered,
        tight=sizes.basis == "tight",
        address_bits=sizes.address_bits,
    )


def proved_cut(programs: Sequence[Loaded], full: PeConfig, runs: Sequence[Observed]) -> TrimReport:
    """Trim ``full`` to programs. ``runs`` are theirs, from which only the transfers in flight
    follow.

    Raises:
        TrimError: see :func:`synth.analysis.trim.trim`; or a size is not proved for every input.
    """
    cut = cut_to(programs, full, Sizes(basis="proved"), timed=[run.profile for run in runs])
    for bound in cut.bounds:
        if bound.basis != "proved":
            raise TrimError(f"{bound.name} is not proved for every input: {bound.why}")
    return cut


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A launch on both designs.

    Attributes:
        name: of the program.
        cycles_full, cycles_trimmed: of the program.
        different: names of what differs between both ends; of a vault, whose outputs are the golden
            model's, nothing does.
        state, cause, pc: how it ended on the full design; ``pc`` is the place of a fault.
        zero_memory: whether the memory held nothing but zeros.
    """

    name: str
    cycles_full: int
    cycles_trimmed: int
    different: tuple[str, ...] = ()
    state: str = "halted"
    cause: str = "NONE"
    pc: int | None = None
    zero_memory: bool = False

    def to_json(self) -> dict[str, object]:
        """The launch as plain JSON data."""
        return {
            "program": self.name,
            "match": not self.different,
            "different": list(self.different),
            "state": self.state,
            "cause": self.cause,
            "pc": self.pc,
            "zero_memory": self.zero_memory,
            "cycles_full": self.cycles_full,
            "cycles_trimmed": self.cycles_trimmed,
        }


class EngineWork:
    """Programs on one engine.

    Attributes:
        runs: on the full engine, as :meth:`cut` made them.
    """

    def __init__(self, programs: Sequence[Loaded], full: PeConfig, launches: Launches) -> None:
        self._programs = programs
        self._full = full
        self._works = [(one, work) for one in programs for work in one.workloads(launches)]
        self.runs: list[Observed] = []

    def vault(self, engine: PeConfig) -> VaultTileConfig | None:
        """There is none."""
        return None

    def cut(self, sizes: Sizes, *, hardware: bool, progress: Progress) -> TrimReport:
        """The engine that the programs need; they run on the full one, without ``hardware`` on the
        simulator alone."""
        # Early, as the runs of the programs on hardware take long.
        profile_of_each([subject.program for subject in self._programs], sizes.profiles)
        cut_to(self._programs, self._full, replace(sizes, basis="proved"))
        # A run on zeros is not representative of runs on data.
        works = [(one, work) for one, work in self._works if hardware or one.memories]
        for subject, work in works:
            cycles = counting(progress, f"{subject.name} on the full engine")
            with _named(subject):
                run = observe(
                    work, self._full, hardware=hardware, slower=sizes.slower, progress=cycles
                )
            self.runs.append(run)
        pairs = zip(works, self.runs, strict=True)
        profiles = [run.profile for (subject, _), run in pairs if subject.memories]
        timed = [run.profile for run in self.runs]
        return cut_to(self._programs, self._full, sizes, profiles, timed)

    def check(
        self, cut: TrimReport, slower: float, progress: Progress
    ) -> tuple[tuple[Checked, ...], tuple[str, ...]]:
        """Run all on the trimmed engine, and on the full one where that was not done; try each
        removed instruction once."""
        checks: list[Checked] = []
        unfaulted: set[str] = set()
        for number, (subject, work) in enumerate(self._works):
            with _named(subject):
                check = check_trimmed(
                    work,
                    cut.full,
                    cut.trimmed,
                    counting(progress, f"{subject.name} on both engines (cycles)"),
                    before=self.runs[number].measured if self.runs else None,
                    try_removed=not checks,
                    slower=slower,
                )
            unfaulted.update(check.unfaulted)
            faulted = check.full.state == "faulted"
            checks.append(
                Checked(
                    name=subject.name,
                    cycles_full=check.cycles_full,
                    cycles_trimmed=check.cycles_trimmed,
                    different=check.different,
                    state=check.full.state,
                    cause=check.full.cause.name,
                    pc=check.full.pc if faulted else None,
                    zero_memory=work.zero_memory,
                )
            )
        return tuple(checks), tuple(sorted(unfaulted))


@contextmanager
def _named(subject: Loaded) -> Iterator[None]:
    """Add the program to the message of a fault."""
    try:
        yield
    except ProgramFaultError as error:
        raise ProgramFaultError(f"{subject.name}: {error}") from error
