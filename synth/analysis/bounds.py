"""Sizes that an engine needs to run some programs, with the basis and reason of each."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Literal, get_args

from isa.faults import FaultCause
from isa.launch import START_FX, START_MR, START_VL
from isa.table import MIN_REGISTER_WIDTH, Instruction, Opcode, Unit
from isa.timing import WORD_BYTES
from pe.config import PeConfig
from support.checks import Checks
from synth.errors import CoverageError, TrimError

from .facts import Facts
from .profile import Profile
from .values import Study, remedy

#: Maximum branches that a message names.
_NAMED = 6


def check_covered(studies: Iterable[Study], remedy: str = "") -> None:
    """Check that profiles cover everything that their programs can do.

    Parameters:
        remedy: declarations that would make the profiles unnecessary.

    Raises:
        CoverageError: a profile does not; the message names branches and source lines.
    """
    for study in studies:
        if study.profile is None:
            continue
        can, did = study.facts, study.profile.facts
        sides = [(a, "never taken") for a in (can.taken & did.executed) - did.taken]
        sides += [(a, "always taken") for a in (can.passed & did.executed) - did.passed]
        missing = [f"{study.place(a)} is {side}" for a, side in sorted(sides)]
        if not missing:
            # These words come after a fault that ended the runs.
            missing = [
                f"{study.place(a)} is not reached" for a in sorted(can.executed - did.executed)
            ]
        if missing:
            unnamed = len(missing) - _NAMED
            text = ", ".join(missing[:_NAMED]) + (f" and {unnamed} more" if unnamed > 0 else "")
            helps = f"; declare what is constant: {remedy}" if remedy else ""
            raise CoverageError(f"the profile does not cover the program: {text}{helps}")


#: Largest fraction of additional cycles.
MOST_SLOWER = 0.5


#: Which sizes are kept.
SizeBasis = Literal["proved", "runs", "tight"]
_CHECK = Checks(TrimError)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The parts and sizes that a trimmed engine keeps.

    Attributes:
        basis: ``proved``: only sizes that are proved for all runs; ``runs``: those of the runs
            unless a smaller one is proved; ``tight``: those of the runs, even if a larger one is
            proved.
        profiles: of further runs.
        allow_uncovered: accept runs that do not cover all paths of the program.
        keep_counters: keep the performance counters.
        rom: bake the program in; there must be only one.
        address_bits: of the memory; None: as many as the programs need.
        slower: additional cycles that the runs may take with fewer transfers in flight, as a
            fraction, 0 to 0.5.

    Raises:
        TrimError: ``basis`` is another word, or ``slower`` outside its range.
    """

    basis: SizeBasis = "runs"
    profiles: Sequence[Profile] = ()
    allow_uncovered: bool = False
    keep_counters: bool = False
    rom: bool = False
    address_bits: int | None = None
    slower: float = 0.0

    def __post_init__(self) -> None:
        _CHECK.one_of("basis", self.basis, get_args(SizeBasis))
        if not 0 <= self.slower <= MOST_SLOWER:
            raise TrimError(f"slower must be a fraction from 0 to {MOST_SLOWER}, not {self.slower}")


#: Basis of a size: proved for all runs; profiled, so that runs that need more fault; or given by
#: the user.
Basis = Literal["proved", "profiled", "given"]

_LEAST_SCRATCHPAD = 64
_LEAST_ADDRESS_BITS = 12
_LEAST_QUEUE = 2


@dataclass(frozen=True, kw_only=True)
class Bound:
    """One size.

    Attributes:
        name: attribute of :class:`pe.config.PeConfig`, or ``fx``, which hardware does not limit.
        value: what the programs need. size: of the trimmed engine, ``value`` rounded up to what can
            be built.
        full: of the full engine.
        basis: of ``value``. why: the word that needs it, or the reason, in one line.
        guard: effect on a run that needs more; "" if no run can.
        profiled: names of programs with runs that might need more.
        remedy: declarations of memory that would bound what depends on data; "" if there are none,
            or if they would not make a size smaller.
    """

    name: str
    value: int
    size: int
    full: int
    basis: Basis
    why: str
    guard: str = ""
    profiled: tuple[str, ...] = ()
    remedy: str = ""

    def to_json(self) -> dict[str, object]:
        """The bound as plain JSON data."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        del named["name"]
        return named | {"profiled": list(self.profiled)}


def _power_of_two(value: int, least: int) -> int:
    return max(least, 1 << max(value - 1, 0).bit_length())


def _signed_bits(ends: tuple[int, int]) -> int:
    return max((end if end >= 0 else ~end).bit_length() for end in ends) + 1


#: Stands for the launch where a word address is expected.
_LAUNCH = -1
#: Bits of a register for an unsigned identity of 16 bits.
_IDENTITY_BITS = 17

#: Maps facts to what each word and the launch need.
_Needed = Callable[[Study, Facts], Mapping[int, int]]


def bounds_of(studies: Sequence[Study], config: PeConfig, sizes: Sizes) -> tuple[Bound, ...]:
    """The sizes that all programs need, up to those of ``config``.

    Proved sizes are used, except where they equal the full engine's: there the profile decides.
    """
    settle = partial(_settle, studies, sizes.basis == "tight")
    scratchpad = settle(
        "scratchpad_bytes",
        config.scratchpad_bytes,
        lambda study, facts: facts.scratchpad,
        lambda value: _power_of_two(value, _LEAST_SCRATCHPAD),
        FaultCause.SCRATCHPAD_RANGE.name,
    )
    alignment = _alignment(settle, config)
    lengths = [
        settle(name, full, _set_by(opcode, start), lambda value: value, guard)
        for name, full, opcode, start, guard in (
            ("max_vl", config.max_vl, Opcode.SET_VL, START_VL, FaultCause.VECTOR_SETTING.name),
            ("max_mr", config.max_mr, Opcode.SET_MR, START_MR, FaultCause.VECTOR_SETTING.name),
            ("fx", 63, Opcode.SET_FX, START_FX, "none is needed"),
        )
    ]
    address = _address(settle, config, sizes)
    width = settle(
        "register_width",
        config.register_width,
        lambda study, facts: {
            _LAUNCH: _IDENTITY_BITS,
            **{word: _signed_bits(ends) for word, ends in facts.written.items()},
        },
        lambda value: max(value, MIN_REGISTER_WIDTH, address.size + 1),
        FaultCause.REGISTER_RANGE.name,
    )
    return (scratchpad, alignment, *lengths, address, width, *_in_flight(studies, config))


def _alignment(settle: Callable[..., Bound], config: PeConfig) -> Bound:
    """Alignment of addresses. Since a smaller alignment needs a larger engine, the bound counts the
    positions in a scratchpad word at which accesses may begin."""
    bound = settle(
        "scratchpad_alignment",
        WORD_BYTES // config.scratchpad_alignment,
        lambda study, facts: {word: WORD_BYTES // step for word, step in facts.alignment.items()},
        lambda value: max(value, 1),
        f"{FaultCause.SCRATCHPAD_RANGE.name}, {FaultCause.MISALIGNED.name}",
    )
    return replace(
        bound,
        value=WORD_BYTES // max(bound.value, 1),
        size=WORD_BYTES // bound.size,
        full=config.scratchpad_alignment,
    )


def _address(settle: Callable[..., Bound], config: PeConfig, sizes: Sizes) -> Bound:
    """Bits of an address of memory, also of the launch's parameter."""
    guard = FaultCause.DRAM_RANGE.name
    if sizes.address_bits is not None:
        return Bound(
            name="address_bits",
            value=sizes.address_bits,
            size=sizes.address_bits,
            full=config.address_bits,
            basis="given",
            why="address bits of the memory",
            guard=guard,
        )
    least = _LEAST_ADDRESS_BITS
    return settle(
        "address_bits", config.address_bits, _address_bits, lambda value: max(value, least), guard
    )


def _set_by(opcode: Opcode, start: int) -> _Needed:
    def needed(study: Study, facts: Facts) -> dict[int, int]:
        rows = study.flow.rows
        found = {word: high for word, (_, high) in facts.settings.items()}
        return {_LAUNCH: start} | {w: high for w, high in found.items() if rows[w].opcode == opcode}

    return needed


def _address_bits(study: Study, facts: Facts) -> dict[int, int]:
    ends = {word: (end - 1).bit_length() for word, end in facts.dram.items() if end}
    if study.profile is not None and facts is study.profile.facts:
        return ends | {_LAUNCH: study.profile.parameters.bit_length()}
    low, high = study.launch["parameters"]
    # A parameter that no instruction reads can be 0, unless it is fixed.
    return ends | {_LAUNCH: high.bit_length() if study.reads_parameters or low == high else 0}


def _settle(
    studies: Sequence[Study],
    tight: bool,
    name: str,
    full: int,
    needed: _Needed,
    fit: Callable[[int], int],
    guard: str,
) -> Bound:
    """The largest size that any study needs, each by proof or profile."""
    chosen: list[tuple[int, str]] = []
    proved: list[int] = []
    remedies: dict[str, None] = {}
    for study in studies:
        needs = needed(study, study.facts)
        largest = _most(study, needs)
        if fit(largest[0]) >= full > fit(0):
            words = [word for word, value in needs.items() if fit(value) >= full]
            helps = remedy(study, (w for w in words if w != _LAUNCH))
            if _LAUNCH in words:
                helps = helps or "--parameters for r5, which the launch sets"
            remedies[helps] = None
        proved.append(largest[0])
        if study.profile is not None:
            seen = _most(study, _profiled(study, needed, fit, full))
            if fit(seen[0]) < fit(largest[0]) and (tight or fit(largest[0]) >= full):
                largest = seen
        chosen.append(largest)
    value, why = max(chosen, key=lambda item: item[0])
    size = min(fit(value), full)
    profiled = tuple(
        study.name
        for study, largest in zip(studies, proved, strict=True)
        if min(fit(largest), full) > size
    )
    return Bound(
        name=name,
        value=value,
        size=size,
        full=full,
        basis="profiled" if profiled else "proved",
        why=why,
        guard=guard if profiled else "",
        profiled=profiled,
        remedy="; ".join(filter(None, remedies)),
    )


def _profiled(
    study: Study, needed: _Needed, fit: Callable[[int], int], full: int
) -> dict[int, int]:
    """What words need in the profiled runs; for words that no run reached, what they provably need,
    if that is less than everything."""
    assert study.profile is not None
    seen = study.profile.facts
    needs = dict(needed(study, seen))
    for word, value in needed(study, study.facts).items():
        if word != _LAUNCH and word not in seen.executed and fit(value) < fit(full):
            needs[word] = value
    return needs


def _most(study: Study, values: Mapping[int, int]) -> tuple[int, str]:
    """The largest need and its reason."""
    word, value = max(values.items(), key=lambda item: item[1], default=(_LAUNCH, 0))
    if not values:
        return 0, "nothing needs it"
    return value, "the launch" if word == _LAUNCH else study.place(word)


def _in_flight(studies: Sequence[Study], config: PeConfig) -> tuple[Bound, Bound]:
    """Entries of the array range check and of the load-store queue. They affect only timing, so
    sizes observed on the hardware are safe for every run. If all runs take the same cycles, one run
    proves that timing does not change."""

    transfers = (Opcode.LD_SRAM, Opcode.ST_SRAM)
    entries = _waiting(
        studies,
        "arc_entries",
        config.arc_entries,
        lambda row: row.opcode in transfers,
        lambda entries, _: max(entries, 1),
        1,
    )
    queue = _waiting(
        studies,
        "load_store_queue",
        config.load_store_queue,
        lambda row: row.unit is Unit.LOAD_STORE,
        lambda _, requests: _power_of_two(requests, _LEAST_QUEUE),
        _LEAST_QUEUE,
    )
    return entries, queue


def _waiting(
    studies: Sequence[Study],
    name: str,
    full: int,
    uses: Callable[[Instruction], bool],
    size_of: Callable[[int, int], int],
    least: int,
) -> Bound:
    """A size that makes runs wait if they need more."""
    users = []
    for study in studies:
        rows = study.flow.rows
        words = [word for word in study.facts.executed if uses(rows[word])]
        if not words:
            continue
        # Where only proofs count, other data may take different cycles.
        if study.in_flight is None or (study.profile is None and not study.steady):
            return Bound(
                name=name,
                value=full,
                size=full,
                full=full,
                basis="given",
                why=f"{study.place(min(words))} uses it; {_no_measure(study)}",
                remedy=remedy(study, study.varying),
            )
        users.append((study, size_of(*study.in_flight)))
    value = max([least, *(size for _, size in users)])
    cycles = _cycles(max((study.slower for study, _ in users), default=0.0))
    varying = [study for study, _ in users if not study.steady]
    why = f"the fewest with which runs take {cycles}; data can't change them"
    if varying:
        why = f"the fewest with which the runs take {cycles}"
    return Bound(
        name=name,
        value=value,
        size=min(value, full),
        full=full,
        basis="profiled" if varying else "proved",
        why=why if users else "no word uses it",
        guard="waits: same results, but later" if varying else "",
        profiled=tuple(study.name for study in varying),
        remedy="; ".join(remedy(study, study.varying) for study in varying),
    )


def _cycles(slower: float) -> str:
    return f"at most {slower:.2%} more cycles" if slower else "the same cycles"


def _no_measure(study: Study) -> str:
    """Why it is unknown how many transfers a program has in flight."""
    if study.in_flight is None:
        return "no run on the hardware shows how many are needed"
    return f"timing depends on data, first at {study.place(min(study.varying))}"
