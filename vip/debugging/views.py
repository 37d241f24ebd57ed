"""What a user of the debugger sees: points, the position in the program, its words, matrices."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isa.accesses import Space
from isa.assembly.disassembler import text_at
from isa.program import Program
from support.errors import VipError

#: What stops a program: a word about to be executed, or an access that was done.
Kind = Literal["break", "write", "read", "access"]

_TYPE = re.compile(r"([iux])(8|16|32|64)(?:/([0-9]{1,2}))?")


class DebugError(VipError):
    """An invalid command, place, address or type; one line."""


class ExpectationError(VipError):
    """A value differs from the one a script expects; one line names both."""


class ElementType(NamedTuple):
    """Type of the elements of a matrix.

    Attributes:
        name: as written. base: ``i`` signed, ``u`` unsigned, ``x`` hexadecimal.
        bits: 8, 16, 32 or 64. fraction: fraction bits, 0..63.
    """

    name: str
    base: str
    bits: int
    fraction: int

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.bits // 8

    def numbers(self, data: bytes) -> NDArray[Any]:
        """The elements in ``data``, as whole numbers."""
        sign = "i" if self.base == "i" else "u"
        return np.frombuffer(data, f"<{sign}{self.size}")

    def text(self, number: int) -> str:
        """An element as a person reads it."""
        if self.base == "x":
            return f"{number:0{self.bits // 4}x}"
        return f"{number / (1 << self.fraction):.6g}" if self.fraction else str(number)


def element_type(text: str) -> ElementType:
    """The type that ``text`` names, such as ``i16``, ``u8``, ``x64``, or ``i16/8`` with fraction
    bits.

    Raises:
        DebugError: it names no type.
    """
    match = _TYPE.fullmatch(text)
    fraction = int(match[3] or 0) if match else 0
    if match is None or fraction > 63 or (match[1] == "x" and fraction):
        raise DebugError(
            f"{text!r} is not an element type: i, u or x with 8, 16, 32 or 64, such as i16, or "
            "i16/8 with fraction bits"
        )
    return ElementType(text, match[1], int(match[2]), fraction)


@dataclass(frozen=True)
class Point:
    """A breakpoint or a watchpoint.

    Attributes:
        number: its identifier.
        kind: ``break``: it stops before a word is executed; else, after an instruction that
            does this to a byte. Registers have only ``write``.
        start: address of the word or of the first byte, or the number of the register.
        size: bytes; 1 for a register or a word.
        space: where the bytes are; None for a breakpoint.
    """

    number: int
    kind: Kind
    start: int
    size: int = 1
    space: Space | None = None

    def to_json(self) -> dict[str, object]:
        """The same as plain data."""
        named = {"kind": self.kind, "number": self.number}
        if self.space is None:
            return {**named, "address": self.start}
        extent = {"space": self.space, "start": self.start, "size": self.size}
        return {**named, **extent, "access": self.kind}

    def concerns(self, writes: bool) -> bool:
        """Whether it is about writing, or about reading."""
        return self.kind == "access" or (self.kind == "write") is writes


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


@dataclass(frozen=True)
class ListedWord:
    """A word of the program.

    Attributes:
        address: of the word. word: its 32 bits.
        text: its instruction in assembly; ``.word`` if it is not one.
        labels: at this address.
        file, line, source: the line that it was assembled from; "" and 0 if unknown.
        current: whether it is the next one. point: number of its breakpoint, or None.
    """

    address: int
    word: int
    text: str
    labels: tuple[str, ...]
    file: str
    line: int
    source: str
    current: bool
    point: int | None

    def to_json(self) -> dict[str, object]:
        """The same as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Stop:
    """The position at which a program has stopped.

    Attributes:
        state: ``stopped``, ``halted`` or ``faulted``. cause: of a fault, else ``NONE``.
        fault: one line about it: where, why, and what is allowed; else "".
        reason: ``launch``, ``steps``, ``point``, ``limit``, ``end``.
        time: instructions executed since the launch.
        pc: word address of the next instruction, or of the one that ended the program.
        place: ``pc`` as a label and a distance, if a label precedes it.
        hits: points met at this position. next: the word at ``pc``; None: outside the program.
        vl, mr, fx: the vector settings.
    """

    state: str
    cause: str
    fault: str
    reason: Literal["launch", "steps", "point", "limit", "end"]
    time: int
    pc: int
    place: str
    hits: tuple[Hit, ...]
    next: ListedWord | None
    vl: int
    mr: int
    fx: int

    def to_json(self) -> dict[str, object]:
        """The same as plain data."""
        return {**asdict(self), "hits": [hit.to_json() for hit in self.hits]}


@dataclass(frozen=True)
class Matrix:
    """Bytes as rows of elements.

    Attributes:
        space: where they are. start: address of the first element.
        type: of the elements. values: rows x columns.
    """

    space: Space
    start: int
    type: ElementType
    values: NDArray[Any]

    def to_json(self) -> dict[str, object]:
        """The same as plain data: elements as whole numbers."""
        return {
            "space": self.space,
            "start": self.start,
            "type": self.type.name,
            "values": self.values.tolist(),
        }


def listed(
    program: Program, addresses: Sequence[int], pc: int, breakpoints: dict[int, int]
) -> tuple[ListedWord, ...]:
    """The words of ``program`` at ``addresses``.

    Parameters:
        pc: word address of the next instruction. breakpoints: word address -> number.
    """
    words = []
    for address in addresses:
        source = program.source.get(address)
        words.append(
            ListedWord(
                address=address,
                word=program.words[address],
                text=text_at(program, address),
                labels=tuple(name for name, at in program.symbols.items() if at == address),
                file=source.file if source else "",
                line=source.line if source else 0,
                source=source.text.rstrip() if source else "",
                current=address == pc,
                point=breakpoints.get(address),
            )
        )
    return tuple(words)
