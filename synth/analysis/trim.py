"""Trimming: a smaller processing engine that runs some programs with the same results and cycles.

Trimming turns one configuration into another and never touches Verilog. It removes instructions,
registers and words that provably no run can use. Sizes that depend on data are proved if constants
determine them (:mod:`synth.analysis.values`); otherwise they come from profiled runs, and a run
that needs more faults. Either way the engine behaves like the full one or stops. Source: SCRATCH,
section 3; docs/decisions/machine.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from isa.program import Program
from isa.table import BY_KEY, INSTRUCTIONS, Unit
from pe.config import PeConfig, serves_history
from synth.errors import DeclarationError, TrimError

from .bounds import Bound, Sizes, bounds_of, check_covered
from .contents import Subject
from .needs import Needs, needed, union
from .profile import Profile, program_digest
from .values import Study, analyse

_MIN_REGISTERS = 8
_MIN_WORDS = 16


def report(
    programs: Subject | Program | Sequence[Subject | Program],
    config: PeConfig,
    profiles: Sequence[Profile] = (),
    *,
    timed: Sequence[Profile] = (),
    sizes: Sizes | None = None,
) -> "TrimReport":
    """The smallest configuration within ``config`` that runs ``programs`` as ``config`` does, and
    the reasons for it.

    It has the instructions that a run can reach, and ``halt``, which the host needs to stop a
    program. A load history stays if they load from a workspace. A run that needs more than its
    profile shows faults.

    Parameters:
        programs: of those that are no :class:`.contents.Subject` nothing is known. A program may be
            listed several times, with different memories.
        profiles: of some of the programs, in addition to those of ``sizes``; ignored if only proved
            sizes are requested. Programs without get the sizes proved for all runs.
        timed: profiles of further runs, of programs whose runs all take the same cycles; only their
            transfers in flight count.
        sizes: parts and sizes that the engine keeps; None: the defaults.

    Raises:
        TrimError: a program does not run on ``config`` or has words that are not instructions, or a
            profile belongs to another program.
        DeclarationError: a memory contradicts declarations or another memory, or a program may
            overwrite memory declared as constant or bounded.
        CoverageError: a size depends on a profile that does not cover its program.
    """
    sizes = sizes or Sizes()
    profiles = () if sizes.basis == "proved" else (*sizes.profiles, *profiles)
    subjects = _subjects([programs] if isinstance(programs, Subject | Program) else programs)
    _check_asked(subjects, config, sizes)
    studies = _studies(subjects, config, profiles, timed)
    parts = {
        study.name: needed(study.program, study.facts.executed, study.name) for study in studies
    }
    needs = union(parts.values())
    _check(parts, config)
    bounds = (*_fixed(needs, config), *_bounds(studies, config, sizes))
    sized = replace(
        _sized(config, needs, bounds),
        counters=config.counters and sizes.keep_counters,
        program=studies[0].program.words if sizes.rom else None,
    )
    exact = all(study.exact for study in studies)
    return TrimReport(needs, parts, config, sized, bounds, exact)


def _check_asked(subjects: Sequence[Subject], config: PeConfig, sizes: Sizes) -> None:
    """Refuse what no analysis can help."""
    if not subjects:
        raise TrimError("there is no program to trim to")
    if sizes.rom and len({subject.program.words for subject in subjects}) > 1:
        raise TrimError(f"a ROM holds one program, not {len(subjects)}")
    if sizes.address_bits is not None and sizes.address_bits > config.address_bits:
        raise TrimError(
            f"address_bits must be at most the configuration's {config.address_bits}, "
            f"not {sizes.address_bits}"
        )
    for subject in subjects:
        at = subject.parameters or 0
        if sizes.address_bits is not None and at >> sizes.address_bits:
            raise TrimError(f"{sizes.address_bits} address bits do not reach parameters at {at:#x}")


def _sized(config: PeConfig, needs: Needs, bounds: Sequence[Bound]) -> PeConfig:
    """``config`` with the needed instructions, ``halt``, and sizes."""
    fields: dict[str, Any] = {bound.name: bound.size for bound in bounds if bound.name != "fx"}
    instructions = needs.instructions | {"halt"}
    history = config.load_history if serves_history(instructions) else 0
    return replace(config, instructions=instructions, load_history=history, **fields)


def _bounds(studies: Sequence[Study], config: PeConfig, sizes: Sizes) -> Sequence[Bound]:
    """The sizes that the programs need; parameters and errors as for :func:`report`."""
    bounds = bounds_of(studies, config, sizes)
    if not sizes.allow_uncovered:
        relied = {name for bound in bounds if bound.name != "fx" for name in bound.profiled}
        helps = {bound.remedy: None for bound in bounds if bound.profiled and bound.remedy}
        check_covered((s for s in studies if s.name in relied), "; ".join(list(helps)[:1]))
    return bounds


def _subjects(programs: Sequence[Subject | Program]) -> list[Subject]:
    """The programs by names that differ; one alone has none."""
    subjects = [
        item if isinstance(item, Subject) else Subject(program=item, name=f"program {number}")
        for number, item in enumerate(programs, 1)
    ]
    if len(subjects) == 1:
        return [replace(subjects[0], name="")]
    names = [subject.name for subject in subjects]
    if len(set(names)) < len(names):
        raise TrimError(f"each program needs a unique name, not {', '.join(names)}")
    return subjects


def _studies(
    subjects: Sequence[Subject],
    config: PeConfig,
    profiles: Sequence[Profile],
    timed: Sequence[Profile],
) -> list[Study]:
    """What is known about each program; parameters and errors as for :func:`report`."""
    programs = [subject.program for subject in subjects]
    studies = []
    for subject, profile, seen in zip(
        subjects,
        profile_of_each(programs, profiles),
        profile_of_each(programs, (*profiles, *timed)),
        strict=True,
    ):
        with named(subject.name):
            study = analyse(
                subject.program, config, subject.launch(config), subject.contents(config)
            )
        if seen is not None:
            study = replace(study, in_flight=seen.in_flight, slower=seen.slower)
        studies.append(replace(study, name=subject.name, profile=profile))
    return studies


@contextmanager
def named(name: str) -> Iterator[None]:
    """Prefix the message of a contradicted declaration with the program's name."""
    try:
        yield
    except DeclarationError as error:
        raise DeclarationError(f"{name}: {error}" if name else str(error)) from error


def profile_of_each(
    programs: Sequence[Program], profiles: Sequence[Profile]
) -> list[Profile | None]:
    """The joined profile of each program, or None.

    Raises:
        TrimError: a profile belongs to none of the programs.
    """
    joined: dict[str, Profile] = {}
    for profile in profiles:
        merged = joined.get(profile.digest)
        joined[profile.digest] = profile if merged is None else merged | profile
    digests = [program_digest(program) for program in programs]
    if joined.keys() - set(digests):
        raise TrimError("a profile belongs to none of the programs: its program had other words")
    return [joined.get(digest) for digest in digests]


def _check(parts: Mapping[str, Needs], config: PeConfig) -> None:
    """Refuse programs that the configuration can't run."""
    for name, needs in parts.items():
        which = f"{name}: the program" if name else "the program"
        for key, places in needs.uses.items():
            if key not in config.instructions:
                raise TrimError(f"{places[0]}: the configuration has no {key}")
        if needs.highest_register >= config.registers:
            raise TrimError(
                f"{which} uses r{needs.highest_register}, the configuration ends at "
                f"r{config.registers - 1}"
            )
        if needs.words > config.instruction_words:
            raise TrimError(
                f"{which} has {needs.words} words, the instruction buffer "
                f"{config.instruction_words}"
            )


def _fixed(needs: Needs, config: PeConfig) -> tuple[Bound, ...]:
    """Sizes that the words alone determine."""
    return tuple(
        Bound(
            name=name,
            value=value,
            size=min(max(least, 1 << (value - 1).bit_length()), full),
            full=full,
            basis="proved",
            why=why,
        )
        for name, value, least, full, why in (
            (
                "registers",
                needs.highest_register + 1,
                _MIN_REGISTERS,
                config.registers,
                f"r{needs.highest_register} is named or set by the launch",
            ),
            (
                "instruction_words",
                needs.words,
                _MIN_WORDS,
                config.instruction_words,
                "length of the program",
            ),
        )
    )


@dataclass(frozen=True)
class TrimReport:
    """Result of trimming: the removed parts, and the reasons for the remaining ones.

    Attributes:
        needs: of all programs. parts: of each, by name; "" if there is only one.
        full, trimmed: configurations before and after.
        bounds: sizes, with how each is known.
        exact: every state in the analysis belongs to a run with some data; otherwise it joined
            states, and the proved sizes may be more than any run needs.
    """

    needs: Needs
    parts: Mapping[str, Needs]
    full: PeConfig
    trimmed: PeConfig
    bounds: tuple[Bound, ...]
    exact: bool

    @property
    def removed(self) -> dict[Unit, tuple[str, ...]]:
        """Removed instructions by functional unit, in the table's order."""
        return self._by_unit(self.full.instructions - self.trimmed.instructions)

    @property
    def kept(self) -> dict[Unit, tuple[str, ...]]:
        """Remaining instructions by functional unit, in the table's order."""
        return self._by_unit(self.trimmed.instructions)

    @staticmethod
    def _by_unit(keys: frozenset[str]) -> dict[Unit, tuple[str, ...]]:
        return {
            unit: tuple(row.key for row in INSTRUCTIONS if row.unit is unit and row.key in keys)
            for unit in Unit
        }

    def why(self, key: str) -> str:
        """Why the instruction or functional unit ``key`` is or isn't in the trimmed engine, in one
        sentence.

        Raises:
            TrimError: there is no such instruction or unit.
        """
        check_reason(key)
        for unit in Unit:
            if key == unit.value:
                return self.why_unit(unit)
        places = self.needs.uses.get(key)
        if places:
            count = f"{len(places)} words, the first is" if len(places) > 1 else "one word,"
            return f"{key} is needed by {count} {places[0]}"
        if key in self.trimmed.instructions:
            return f"{key} is in every engine: without it no program could end"
        return f"{key} is removed: no reachable word needs it"

    def why_unit(self, unit: Unit) -> str:
        """Why functional unit ``unit`` remains, or that nothing needs it, in one sentence."""
        used = [key for key in self.kept[unit] if key in self.needs.uses]
        if not used:
            return f"{unit.value}: no reachable word needs it"
        words = sum(len(self.needs.uses[key]) for key in used)
        rarest = min(used, key=lambda key: len(self.needs.uses[key]))
        return (
            f"{unit.value}: {words} words of {len(used)} instructions; rarest {rarest}, at "
            f"{self.needs.uses[rarest][0]}"
        )

    def to_json(self) -> dict[str, object]:
        """The report as plain JSON data."""
        return {
            "needs": self.needs.to_json(),
            "removed": {unit.value: list(keys) for unit, keys in self.removed.items()},
            "kept": {unit.value: list(keys) for unit, keys in self.kept.items()},
            "bounds": {bound.name: bound.to_json() for bound in self.bounds},
            "exact": self.exact,
        }


def check_reason(key: str) -> None:
    """Refuse names that :meth:`TrimReport.why` can't explain.

    Raises:
        TrimError: ``key`` is neither an instruction nor a functional unit.
    """
    if key not in BY_KEY and all(key != unit.value for unit in Unit):
        raise TrimError(f"there is no instruction or unit {key!r}")
