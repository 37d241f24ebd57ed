"""Places at which a program stops: breakpoints, and watchpoints on bytes and registers."""

from dataclasses import asdict, dataclass
from typing import Literal

from isa.accesses import Space
from support.errors import VipError

#: Accesses that a watchpoint stops after.
Kind = Literal["write", "read", "access"]


@dataclass(frozen=True)
class Breakpoint:
    """Stops before the word at ``address`` is executed.

    Attributes:
        number: its identifier. address: of a word of the program.
    """

    number: int
    address: int

    def to_json(self) -> dict[str, object]:
        """The same as plain data."""
        return {"kind": "break", **asdict(self)}


@dataclass(frozen=True)
class Watchpoint:
    """Stops after an instruction that touches a byte.

    Attributes:
        number: its identifier. space: where the bytes are.
        start, size: the bytes; for a register its number, and 1.
        kind: the accesses that stop it; ``write`` for a register.
    """

    number: int
    space: Space
    start: int
    size: int
    kind: Kind = "write"

    def to_json(self) -> dict[str, object]:
        """The same as plain data."""
        return {"kind": "watch", **{**asdict(self), "access": self.kind}}

    def concerns(self, writes: bool) -> bool:
        """Whether it is about writing, or about reading."""
        return self.kind == "access" or (self.kind == "write") is writes


Point = Breakpoint | Watchpoint


@dataclass(frozen=True)
class Hit:
    """A point at which a program has stopped.

    Attributes:
        point: its number.
        pc: word of the breakpoint, or of the instruction that accessed the bytes.
        wrote: whether it wrote them; None for a breakpoint.
        before, after: the watched bytes before and after it, little-endian; empty for a breakpoint.
    """

    point: int
    pc: int
    wrote: bool | None = None
    before: bytes = b""
    after: bytes = b""

    def to_json(self) -> dict[str, object]:
        """The same as plain data; bytes as hexadecimal text."""
        return {**asdict(self), "before": self.before.hex(), "after": self.after.hex()}


class DebugError(VipError):
    """An invalid command, place, address or type; one line."""


class ExpectationError(VipError):
    """A value differs from the one a script expects; one line names both."""
