"""Runs of programs on the full engine, and the engine that they and the proofs cut it down to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from isa.image import DramImage
from pe.config import PeConfig
from sim_tb.cosim.trim_check import Measured, TrimCheck, Workload, check_trimmed, measure
from soc.tile.config import VaultTileConfig
from synth.analysis.facts import Facts
from synth.analysis.profile import InFlight, Profile, profile_run, program_digest
from synth.analysis.trim import TrimReport, profile_of_each, report
from synth.errors import TrimError
from vip.progress import Progress, counting

from .subjects import Launches, Loaded

__all__ = [
    "MOST_SLOWER",
    "SLOWER",
    "EngineWork",
    "Sizes",
    "cut_to",
    "demand",
    "moved",
    "profile_work",
    "proved_cut",
    "timed_profile",
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


def profile_work(
    work: Workload, full: PeConfig, progress: Callable[[int], None] | None = None
) -> Profile:
    """Profile ``work`` on the simulator of the engine ``full``.

    Parameters:
        progress: called now and then with the instructions so far.

    Raises:
        TrimError: the program faults, and may not, or does not end.
        VipError: a run that can't be done.
    """
    with DramImage(1 << full.address_bits) as image:
        image.write(0, work.contents)
        return profile_run(
            work.program,
            image,
            full,
            parameters=work.parameters,
            limit=_LIMIT,
            may_fault=work.may_fault,
            progress=progress,
        )


def timed_profile(run: Measured, slower: float) -> Profile:
    """The profile of which only the transfers in flight of ``run`` count.

    Parameters:
        slower: more cycles that fewer of them may cost, as :func:`measure` was asked.
    """
    in_flight = None
    if run.in_flight is not None:
        entries, requests = run.in_flight
        in_flight = InFlight(arc_entries=entries, requests=requests, slower=slower)
    return Profile(digest=program_digest(run.work.program), facts=Facts(), in_flight=in_flight)


def moved(runs: Sequence[Measured]) -> int:
    """Bytes that the work of ``runs``, all with counters, loads and stores."""
    counted = [run.result.counters for run in runs]
    return sum(counters["BYTES_LOADED"] + counters["BYTES_STORED"] for counters in counted)


def demand(runs: Sequence[Measured]) -> float:
    """Bytes a cycle that the full engine moves in ``runs``, all with counters."""
    cycles = sum(run.result.counters["CYCLES"] for run in runs)
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


def proved_cut(programs: Sequence[Loaded], full: PeConfig, runs: Sequence[Measured]) -> TrimReport:
    """Trim ``full`` to programs. ``runs`` are theirs, with :data:`SLOWER`, from which only the
    transfers in flight follow.

    Raises:
        TrimError: see :func:`synth.analysis.trim.trim`; or a size is not proved for every input.
    """
    timed = [timed_profile(run, SLOWER) for run in runs]
    cut = cut_to(programs, full, Sizes(basis="proved"), timed=timed)
    for bound in cut.bounds:
        if bound.basis != "proved":
            raise TrimError(f"{bound.name} is not proved for every input: {bound.why}")
    return cut


class EngineWork:
    """Programs on one engine.

    Attributes:
        runs: on the Verilog of the full engine, as :meth:`cut` made them.
    """

    def __init__(self, programs: Sequence[Loaded], full: PeConfig, launches: Launches) -> None:
        self._programs = programs
        self._full = full
        self._works = [(one, work) for one in programs for work in one.workloads(launches)]
        self.runs: list[Measured] = []

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
        profiles = []
        for subject, work in works:
            cycles = counting(progress, f"{subject.name} on the full engine")
            profile = profile_work(work, self._full, cycles)
            if subject.memories:
                profiles.append(profile)
            if hardware:
                self.runs.append(measure(work, self._full, cycles, slower=sizes.slower))
        timed = [timed_profile(run, sizes.slower) for run in self.runs]
        return cut_to(self._programs, self._full, sizes, profiles, timed)

    def check(
        self, cut: TrimReport, slower: float, progress: Progress
    ) -> tuple[tuple[TrimCheck, ...], tuple[str, ...]]:
        """Run all on the trimmed engine, and on the full one where that was not done; try each
        removed instruction once."""
        checks = tuple(
            check_trimmed(
                work,
                cut.full,
                cut.trimmed,
                counting(progress, f"{work.name} on both engines (cycles)"),
                before=self.runs[number] if self.runs else None,
                try_removed=number == 0,
                slower=slower,
            )
            for number, (_, work) in enumerate(self._works)
        )
        return checks, tuple(sorted({key for check in checks for key in check.unfaulted}))
