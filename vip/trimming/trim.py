"""The verb ``trim``: the engine that some programs need, compared with the full one."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from hdl.yosys import need_yosys
from isa.program import Program
from pe.config import PeConfig
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.trim_check import ProgramFaultError, Workload, check_trimmed
from sim_tb.runner.build import need_simulator
from soc.generate.configuration_file import configuration_text
from soc.generate.generate import generate as write_verilog
from synth.analysis.profile import Profile
from synth.analysis.trim import TrimReport, profile_of_each, report
from synth.errors import TrimError
from synth.formal.prove import prove as prove_trimmed
from synth.physical.budget import find_budget
from synth.physical.comparison import AreaComparison, compare_area
from synth.physical.targets import DEFAULT_TARGETS
from vip.configurations import Design, engine
from vip.progress import Progress, by_part, counting, naming, silent

from .filling import CHIP_FILE, fit_both
from .result import Checked, TrimResult
from .runs import MOST_SLOWER, Observed, observe
from .subjects import Loaded, Subject, load_subjects

__all__ = ["Launches", "Sizes", "Subject", "need_tools", "trim"]


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
class Launches:
    """Settings for the runs of the programs.

    Attributes:
        parameters: DRAM address of the parameter block (r5), fixed with the application.
        behaviour: of the memory. max_cycles: a longer run is an error.
        allow_fault: compare a program that faults up to its fault.
    """

    parameters: int = 0
    behaviour: MemoryBehaviour = field(default_factory=MemoryBehaviour)
    max_cycles: int = 200_000_000
    allow_fault: bool = False


def trim(
    programs: Sequence[Subject | Program | Path | str],
    config: Design = "pe",
    *,
    output: Path | str | None = None,
    sizes: Sizes | None = None,
    launches: Launches | None = None,
    check: bool = True,
    area: bool = True,
    prove: bool = False,
    fit: str | None = None,
    progress: Progress = silent,
) -> TrimResult:
    """Rebuild an engine with what programs need, and compare it with the full one.

    ``trim([Path("kernel.s")], output="build/trimmed")`` writes the Verilog of the engine that
    kernel.s needs, unless :attr:`TrimResult.failure` gives a reason.

    Parameters:
        programs: that the engine must run, at least one; a text is the name of an application of
            the suite (:mod:`microkernels.suite`), which declares its constants, or of a file.
        config: of the full engine.
        output: directory of Verilog; with ``fit`` also a file with the chip of trimmed engines.
        sizes: parts and sizes that the engine keeps; None: sizes of the runs, else proved ones.
        launches: settings for the runs; None: the defaults.
        check: run the programs on the Verilog of both engines: results must be the same, cycles
            too unless ``sizes`` allows more, and each removed instruction must fault.
        area: synthesise both engines.
        prove: prove that the engine is equivalent to the full one, which takes minutes.
        fit: device (:func:`synth.physical.budget.find_budget`) to fill with engines of either
            kind, on all of which the programs run; needs ``check``.
        progress: called with each stage.

    Raises:
        DeclarationError: declared memory that contradicts the memory given, or that a program may
            overwrite.
        CoverageError: runs that do not cover all paths of a program, unless that is allowed.
        ProgramFaultError: a program faults on the full engine, unless that is allowed.
        VipError: a program, configuration, device or memory that can't be used, or a run that does
            not end.
        OSError: a file that can't be read or written.
    """
    sizes, launches = sizes or Sizes(), launches or Launches()
    budget = None if fit is None else find_budget(fit)
    if budget is not None and not check:
        raise TrimError("a device is filled with engines that run the programs: check is needed")
    if sizes.slower and not check:
        raise TrimError("more cycles are allowed to runs that are measured: check is needed")
    need_tools(check=check, synthesis=area or prove or output is not None)
    full = engine(config)
    subjects = load_subjects(programs, full, launches.parameters)
    # Early, as the runs of the programs on hardware take long.
    profile_of_each([each.program for each in subjects], sizes.profiles)
    _cut(subjects, full, replace(sizes, basis="proved"), (), ())
    works = _works(subjects, launches)
    # A run on zeros is not representative of runs on data.
    given = works if check else [each for each in works if each[0].memories]
    runs = _observe(given, full, sizes.slower, hardware=check, progress=progress)
    profiles = [run.profile for (one, _), run in zip(given, runs, strict=True) if one.memories]
    cut = _cut(subjects, full, sizes, profiles, [run.profile for run in runs])
    found = TrimResult(
        cut=cut,
        checks=_check(works, runs, cut, sizes.slower, progress) if check else (),
        areas=_areas(cut.full, cut.trimmed, progress) if area else {},
    )
    if prove and not found.failure:
        proof = prove_trimmed(cut.full, cut.trimmed, by_part(progress, "proof"))
        found = replace(found, proof=proof)
    if budget is not None and not found.failure:
        step = naming(progress, f"filling {budget.name}")
        found = replace(found, fitting=fit_both(cut.full, cut.trimmed, budget, runs, step))
    if output is None or found.failure:
        return found
    beside = {}
    if found.fitting is not None:
        beside[CHIP_FILE] = configuration_text(found.fitting.trimmed.chip.config)
    return replace(found, verilog=write_verilog(cut.trimmed, output, extra_files=beside))


def need_tools(*, check: bool, synthesis: bool) -> None:
    """Make sure, before the work, that what trimming runs is installed.

    Parameters:
        check: programs run on Verilog. synthesis: Verilog is written, measured or proved.

    Raises:
        MissingExtraError: something is not; the message names it.
    """
    if check:
        need_simulator()
    elif synthesis:
        need_yosys()


def _areas(
    full: PeConfig, trimmed: PeConfig, progress: Progress = silent
) -> Mapping[str, AreaComparison]:
    """Area of both engines for every target of :data:`DEFAULT_TARGETS`.

    Raises:
        SynthesisError: a design that Yosys refuses.
    """
    return {
        target: compare_area(full, trimmed, target, by_part(progress, f"synthesis for {target}"))
        for target in DEFAULT_TARGETS
    }


def _works(subjects: Sequence[Loaded], launches: Launches) -> list[tuple[Loaded, Workload]]:
    """The runs of each program: one on each of its memories, or one on zeros."""
    return [
        (
            subject,
            Workload(
                program=subject.program,
                contents=memory,
                parameters=subject.known.parameters or 0,
                memory=launches.behaviour,
                max_cycles=launches.max_cycles,
                may_fault=launches.allow_fault,
            ),
        )
        for subject in subjects
        for memory in subject.memories or (b"",)
    ]


def _observe(
    works: Sequence[tuple[Loaded, Workload]],
    full: PeConfig,
    slower: float,
    *,
    hardware: bool,
    progress: Progress,
) -> list[Observed]:
    """Run all on the full engine; without ``hardware``, on the simulator alone."""
    runs = []
    for subject, work in works:
        cycles = counting(progress, f"{subject.name} on the full engine")
        with _named(subject):
            run = observe(work, full, hardware=hardware, slower=slower, progress=cycles)
        runs.append(run)
    return runs


@contextmanager
def _named(subject: Loaded) -> Iterator[None]:
    """Add the program to the message of a fault."""
    try:
        yield
    except ProgramFaultError as error:
        raise ProgramFaultError(f"{subject.name}: {error}") from error


def _cut(
    subjects: Sequence[Loaded],
    full: PeConfig,
    sizes: Sizes,
    profiles: Sequence[Profile],
    timed: Sequence[Profile],
) -> TrimReport:
    return report(
        [each.program for each in subjects],
        full,
        () if sizes.basis == "proved" else (*sizes.profiles, *profiles),
        names=[each.name for each in subjects],
        known=[each.known for each in subjects],
        timed=timed,
        keep_counters=sizes.keep_counters,
        rom=sizes.rom,
        allow_uncovered=sizes.allow_uncovered,
        tight=sizes.basis == "tight",
        address_bits=sizes.address_bits,
    )


def _check(
    works: Sequence[tuple[Loaded, Workload]],
    runs: Sequence[Observed],
    cut: TrimReport,
    slower: float,
    progress: Progress,
) -> tuple[Checked, ...]:
    """Run all on the trimmed engine, and on the full one where ``runs`` lacks that; try each
    removed instruction once."""
    checks: list[Checked] = []
    for number, (subject, work) in enumerate(works):
        with _named(subject):
            check = check_trimmed(
                work,
                cut.full,
                cut.trimmed,
                counting(progress, f"{subject.name} on both engines (cycles)"),
                before=runs[number].measured if runs else None,
                try_removed=not checks,
                slower=slower,
            )
        checks.append(Checked(name=subject.name, check=check, zero_memory=work.zero_memory))
    return tuple(checks)
