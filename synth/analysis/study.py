"""Programs with the facts known about them, and whether their profiles went everywhere."""

from collections.abc import Iterable
from dataclasses import dataclass

from isa.program import Program
from synth.errors import CoverageError

from .profile import InFlight, Profile
from .reach import place
from .values import Values

__all__ = ["Study", "check_covered"]

#: Branches that a message names.
_NAMED = 6


@dataclass(frozen=True, kw_only=True)
class Study:
    """A program with the facts known about it.

    Attributes:
        name: for messages; "" where there is only one. values: proved. profile: seen, if any.
        in_flight: seen on the hardware, if anything was.
    """

    program: Program
    name: str
    values: Values
    profile: Profile | None
    in_flight: InFlight | None

    def place(self, address: int) -> str:
        """Place of a word, for a message."""
        prefix = f"{self.name}: " if self.name else ""
        return prefix + place(self.program, address)


def check_covered(studies: Iterable[Study], remedy: str = "") -> None:
    """Make sure that profiles went wherever their programs can go.

    Parameters:
        remedy: declarations that would make the profiles needless.

    Raises:
        CoverageError: one did not; names the branches, with source lines.
    """
    for study in studies:
        if study.profile is None:
            continue
        can, did = study.values.facts, study.profile.facts
        sides = [(a, "never taken") for a in (can.taken & did.executed) - did.taken]
        sides += [(a, "always taken") for a in (can.passed & did.executed) - did.passed]
        missing = [f"{study.place(a)} is {side}" for a, side in sorted(sides)]
        if not missing:
            # After a fault that ended the runs.
            missing = [
                f"{study.place(a)} is not reached" for a in sorted(can.executed - did.executed)
            ]
        if missing:
            more = len(missing) - _NAMED
            text = ", ".join(missing[:_NAMED]) + (f" and {more} more" if more > 0 else "")
            helps = f"; declare what is constant: {remedy}" if remedy else ""
            raise CoverageError(f"the profile does not cover the program: {text}{helps}")
