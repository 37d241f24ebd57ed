"""Corresponding states of two designs, as rules on their registers.

A relation between the states of a full and a trimmed design is inductive if it holds after reset,
every step from related states with related inputs leads to related states, and the outputs of
related states are related. :mod:`synth.formal.miter` builds the circuits that express this.

Without a rule, registers (their members, and ports) with the same name are equal, the wider one
being an extension of the other; a register that only one design has is arbitrary.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from amaranth.hdl import Value
from amaranth.lib import data


class View(Protocol):
    """The values of one design at one time, by name of a register, member or port."""

    def __getitem__(self, name: str) -> Value: ...

    def has(self, name: str) -> bool:
        """Whether the design has it."""


Condition = Callable[[View], Value]
#: A condition on both designs, from the values of the full and the trimmed one.
Rule = Callable[[View, View], Value]


#: Value of a member in the full and the trimmed design; None: anything.
Pair = tuple[int | None, int | None]


@dataclass(frozen=True)
class Codes:
    """Members that contain each design's encoding of the same thing.

    Attributes:
        names: of the members, prefixed with the register's name; a design may lack some.
        words: for each possible thing, the values of all members.
        when: condition under which they have these values; otherwise they are arbitrary. None:
            always.
    """

    names: tuple[str, ...]
    words: tuple[tuple[Pair, ...], ...]
    when: Condition | None = None


@dataclass(frozen=True)
class Split:
    """Splits goals into cases: a flag is 0, or it is 1 with the codes of each thing; then each
    position of the lowest 1 in a number and, if that is 0, each value of some bits.

    Attributes:
        flag: register of one bit. codes: the things, a rule of the same relation.
        number: register of both designs. register, bits: another register, and how many of its low
            bits.
    """

    flag: str
    codes: Codes
    number: str
    register: str
    bits: int


@dataclass
class Relation:
    """Rules of correspondence.

    Attributes:
        gates: pattern of names (a regular expression for the whole name) and a condition under
            which registers with such names correspond. The last match counts.
        ignored: patterns of names that never need to correspond.
        signed: patterns of names that are sign-extended. truncated: patterns of names that
            correspond only in the bits that both have.
        codes: see :class:`Codes`.
        ghosts: registers of one bit that neither design has, 0 after reset: name for views -> its
            next value, from values of the full design before the step.
        invariants: name -> condition on both designs' states, assumed before a step and shown after
            it.
        guarantees: name -> condition on values between registers, to be shown.
        assumptions: name -> condition on the step, assumed, from values before it.
        split: how goals are split; None: not at all.
        apart: pattern of names of goals and conditions: such a goal is proved separately for each
            combination of the conditions, each of which leaves less to compare.
        layouts: layouts of registers, ports and memories whose members the design does not name,
            of the full and of the trimmed design.
    """

    gates: list[tuple[str, Condition]] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    signed: list[str] = field(default_factory=list)
    truncated: list[str] = field(default_factory=list)
    codes: list[Codes] = field(default_factory=list)
    ghosts: dict[str, Condition] = field(default_factory=dict)
    invariants: dict[str, Rule] = field(default_factory=dict)
    guarantees: dict[str, Rule] = field(default_factory=dict)
    assumptions: dict[str, Rule] = field(default_factory=dict)
    split: Split | None = None
    apart: list[tuple[str, tuple[Condition, ...]]] = field(default_factory=list)
    layouts: dict[str, tuple[data.Layout, data.Layout]] = field(default_factory=dict)

    def invariant(self, name: str, holds: Rule) -> None:
        """Add to :attr:`invariants`."""
        _add(self.invariants, name, holds)

    def guarantee(self, name: str, holds: Rule) -> None:
        """Add to :attr:`guarantees`."""
        _add(self.guarantees, name, holds)

    def assume(self, name: str, holds: Rule) -> None:
        """Add to :attr:`assumptions`."""
        _add(self.assumptions, name, holds)

    def when(self, condition: Condition, *names: str) -> None:
        """Registers called ``names`` correspond only under ``condition``."""
        self.gates += [(re.escape(name), condition) for name in names]

    def members_when(self, condition: Condition, *names: str) -> None:
        """Members of the registers called ``names`` correspond only under ``condition``."""
        self.gates += [(re.escape(name) + r"\..*", condition) for name in names]

    def gate(self, name: str) -> Condition | None:
        """The condition under which ``name`` corresponds; None: always."""
        conditions = [condition for pattern, condition in self.gates if re.fullmatch(pattern, name)]
        return conditions[-1] if conditions else None

    def is_ignored(self, name: str) -> bool:
        """Whether ``name`` need not correspond."""
        return any(re.fullmatch(pattern, name) for pattern in self.ignored)

    def is_signed(self, name: str) -> bool:
        """Whether ``name`` is sign-extended."""
        return any(re.fullmatch(pattern, name) for pattern in self.signed)

    def is_truncated(self, name: str) -> bool:
        """Whether ``name`` corresponds only in the bits that both designs have."""
        return any(re.fullmatch(pattern, name) for pattern in self.truncated)

    def parts(self, goal: str) -> tuple[Condition, ...]:
        """The conditions by which ``goal`` is split."""
        matching = [conditions for name, conditions in self.apart if re.fullmatch(name, goal)]
        return matching[-1] if matching else ()

    def add_codes(self, codes: Codes | None) -> None:
        """Add ``codes``, if there are any."""
        if codes is not None:
            self.codes.append(codes)

    def code(self, name: str) -> Codes | None:
        """The combination that ``name`` is part of."""
        return next((codes for codes in self.codes if name in codes.names), None)


def _add(rules: dict[str, Rule], name: str, holds: Rule) -> None:
    # The later of two would represent both.
    assert name not in rules, name
    rules[name] = holds


def members(layout: data.Layout) -> Mapping[str, tuple[int, int, bool]]:
    """Innermost members of ``layout`` that have bits: name -> (lowest bit, width, signed)."""
    places: dict[str, tuple[int, int, bool]] = {}

    def descend(inner: data.Layout, prefix: str, base: int) -> None:
        for key, member in inner:
            name = f"{prefix}[{key}]" if isinstance(key, int) else f"{prefix}.{key}".lstrip(".")
            if isinstance(member.shape, data.Layout):
                descend(member.shape, name, base + member.offset)
            else:
                shape = data.Shape.cast(member.shape)
                if not shape.width:
                    continue
                places[name] = (base + member.offset, shape.width, shape.signed)

    descend(layout, "", 0)
    return places
