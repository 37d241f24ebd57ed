"""Programs: the output of the assembler, and the files that hold them; what an application declares
about the memory that they run in.

A program file is text: a header line with the ISA version, the number of bytes that follow and
their SHA-256, then JSON with the code (one word per line), symbols, constants and source lines. The
formats of hosts and simulators are plain words, without symbols.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from support.errors import Shown, VipError, counted
from support.files import read_bytes, write_atomically

from .table import ISA_VERSION

#: Names of labels and constants; ``r`` followed by digits is a register, not a name.
NAME_PATTERN = r"(?!r[0-9]+(?![\w.]))[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*"

#: Most characters of a line of assembly.
MAX_LINE = 4096
_LEADING_LABEL = re.compile(rf"\s*({NAME_PATTERN})\s*:")
_MAGIC = "vip-program"
_HEADER = re.compile(_MAGIC + r" isa=(\d{1,9}) bytes=(\d{1,9}) sha256=([0-9a-f]{64})")
#: Most bytes of a program file.
PROGRAM_BYTES = 1 << 23
#: Exceptions from reading JSON of an unexpected form.
_MALFORMED = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
)
_WORD = re.compile(r"0x[0-9a-f]{8}")


class ProgramError(VipError):
    """A program or program file that can't be used; one line says which and why."""


class SourceLine(NamedTuple):
    """Source of a word: file name, line number from 1, and the line's text."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Program(Shown):
    """An assembled program.

    Attributes:
        words: 32-bit instruction words, from address 0 on.
        symbols: label -> word address, 0..len(words).
        constants: named constant -> value.
        source: word address -> line that it was assembled from; may lack words.

    Raises:
        ProgramError: a word beyond 32 bits, a bad name, or an address outside the program.
    """

    words: tuple[int, ...]
    symbols: Mapping[str, int] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)
    source: Mapping[int, SourceLine] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("symbols", "constants", "source"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        object.__setattr__(self, "words", tuple(self.words))
        for address, word in enumerate(self.words):
            if not 0 <= word < 1 << 32:
                raise ProgramError(f"word {address} is {word:#x}, which has more than 32 bits")
        for kind, names in (("label", self.symbols), ("constant", self.constants)):
            for name in names:
                if not re.fullmatch(NAME_PATTERN, name):
                    raise ProgramError(f"{name!r} can't be the name of a {kind}")
        for name, address in self.symbols.items():
            if not 0 <= address <= len(self.words):
                raise ProgramError(f"label {name!r} is at {address}, outside 0..{len(self.words)}")
        for address in self.source:
            if not 0 <= address < len(self.words):
                raise ProgramError(f"a source line is given for word {address}, which isn't there")

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.words, dict(self.symbols), dict(self.constants), dict(self.source))
        return type(self), parts

    def __hash__(self) -> int:
        return hash(self.words)

    @property
    def labels(self) -> dict[int, list[str]]:
        """Word address -> its labels."""
        labels: dict[int, list[str]] = {}
        for name, address in self.symbols.items():
            labels.setdefault(address, []).append(name)
        return labels

    def _facts(self) -> dict[str, object]:
        files = sorted({Path(line.file).name for line in self.source.values()})
        sizes = {"words": self.words, "labels": self.symbols, "constants": self.constants}
        return {"name": ", ".join(files), **sizes}

    def save(self, path: Path | str) -> None:
        """Write the program to a file, atomically.

        Raises:
            ProgramError: the file can't be written.
        """
        body = self._body()
        digest = hashlib.sha256(body).hexdigest()
        header = f"{_MAGIC} isa={ISA_VERSION} bytes={len(body)} sha256={digest}\n"
        try:
            write_atomically(Path(path), header.encode() + body)
        except OSError as error:
            raise ProgramError(f"{path}: can't be written: {error.strerror}") from error

    def _body(self) -> bytes:
        content = {
            "words": [f"0x{word:08x}" for word in self.words],
            "symbols": dict(self.symbols),
            "constants": dict(self.constants),
        }
        # Each source line takes one line of the file, so files can be compared as text.
        lines = [json.dumps([address, *line]) for address, line in sorted(self.source.items())]
        text = json.dumps(content, indent=1)
        inner = ",\n".join(f"  {line}" for line in lines)
        return f'{text[:-2]},\n "source": [\n{inner}\n ]\n}}\n'.encode()

    @classmethod
    def load(cls, path: Path | str) -> "Program":
        """Read a program from a file that :meth:`save` wrote.

        Raises:
            ProgramError: the file can't be read, is not a program, is truncated or damaged, or was
                made for another version of the instruction set.
        """
        try:
            content = read_bytes(path, PROGRAM_BYTES)
        except OSError as error:
            raise ProgramError(f"{path}: can't be read: {error.strerror}") from error
        try:
            return cls._parse(content)
        except ProgramError as error:
            raise ProgramError(f"{path}: {error}") from error

    @classmethod
    def _parse(cls, content: bytes) -> "Program":
        first, newline, body = content.partition(b"\n")
        header = _HEADER.fullmatch(first.decode("latin-1"))
        if header is None:
            if first.startswith(_MAGIC.encode()):
                reason = "damaged: its header can't be read" if newline else "truncated"
                raise ProgramError(reason)
            raise ProgramError("not a VIP program file (.vip; assembly ends in .s or .asm)")
        version, size, digest = int(header[1]), int(header[2]), header[3]
        if version != ISA_VERSION:
            raise ProgramError(
                f"made for version {version} of the instruction set, this is {ISA_VERSION}"
            )
        if len(body) < size:
            raise ProgramError(f"truncated: {len(body)} of {size} bytes of code are there")
        if len(body) > size:
            raise ProgramError(f"damaged: {len(body)} bytes of code are there instead of {size}")
        if hashlib.sha256(body).hexdigest() != digest:
            raise ProgramError("damaged: its contents don't match its checksum")
        try:
            return cls._build(json.loads(body))
        except _MALFORMED as error:
            raise ProgramError(f"malformed: {error}") from error

    @classmethod
    def _build(cls, content: dict[str, Any]) -> "Program":
        for word in content["words"]:
            if not _WORD.fullmatch(word):
                raise ProgramError(f"{word!r} is not an instruction word")
        for names in (content["symbols"], content["constants"]):
            for name, value in names.items():
                if type(value) is not int:
                    raise ProgramError(f"{name!r} has the value {value!r}, which is not an integer")
        return cls(
            words=tuple(int(word, 16) for word in content["words"]),
            symbols=content["symbols"],
            constants=content["constants"],
            source={
                int(address): SourceLine(str(file), int(line), str(text))
                for address, file, line, text in content["source"]
            },
        )


class Span(NamedTuple):
    """``size`` bytes (1 or more) of a memory or scratchpad, from ``start`` (0 or more) on."""

    start: int
    size: int

    @property
    def end(self) -> int:
        """The first address after them."""
        return self.start + self.size

    @property
    def slice(self) -> slice:
        """The same, to index an array of bytes."""
        return slice(self.start, self.end)

    def overlaps(self, other: "Span") -> bool:
        """Whether they share a byte."""
        return max(self.start, other.start) < min(self.end, other.end)

    def __str__(self) -> str:
        return f"{self.start:#x}:{self.size}"


@dataclass(frozen=True, order=True)
class Numbers:
    """Signed numbers in memory, one after the other, each from ``low`` to ``high``.

    Attributes:
        span: their bytes, whole numbers of ``width`` bits from a multiple of their bytes on.
        width: bits of each, 8, 16, 32 or 64.
    """

    span: Span
    low: int
    high: int
    width: int = 64

    def __str__(self) -> str:
        width = "" if self.width == 64 else f"/{self.width}"
        return f"{self.span}{width}={self.low}..{self.high}"


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What holds in every launch of a program: what its application fixes. All undeclared bytes are
    data: they may hold anything at any time.

    Attributes:
        constants: bytes that always equal the memory image's; no engine writes them.
        numbers: bounded numbers. The bounds hold at launch, and whenever another agent writes them.
            A 64-bit number that the program itself stores with ``st.reg`` is private: nothing else
            changes it before the program ends.
        slots: the program runs in the slots below.
    """

    constants: tuple[Span, ...] = ()
    numbers: tuple[Numbers, ...] = ()
    slots: int = 1 << 16


#: Of a launch whose bytes are all data.
NOTHING_DECLARED = Declared()


_WORD_BYTES = 4


def hexadecimal(program: Program) -> bytes:
    """One line per word, eight hexadecimal digits."""
    return "".join(f"{word:08x}\n" for word in program.words).encode()


def binary(program: Program) -> bytes:
    """The words as laid out in a host's memory: four bytes each, little-endian."""
    return b"".join(word.to_bytes(_WORD_BYTES, "little") for word in program.words)


def memory_file(program: Program) -> bytes:
    """For Verilog's ``$readmemh``: from address 0 on, with labels and sources as comments."""
    labels, lines = program.labels, ["@0"]
    for address, word in enumerate(program.words):
        lines += [f"// {_comment(name)}:" for name in labels.get(address, ())]
        source = program.source.get(address)
        lines.append(f"{word:08x}" + (f" // {_comment(source.text)}" if source else ""))
    return "".join(f"{line}\n" for line in lines).encode()


def _comment(text: str) -> str:
    """``text`` on one line, in ASCII: a simulator need not read more."""
    return " ".join(text.split()).encode("ascii", "replace").decode()


#: Name -> function that writes the format.
FORMATS: Mapping[str, Callable[[Program], bytes]] = MappingProxyType(
    {"hex": hexadecimal, "bin": binary, "mem": memory_file}
)


def still_running(place: str, count: int, noun: str) -> str:
    """One line on a run that reached its limit of ``count`` cycles or instructions (``noun``) at a
    ``place``, such as :func:`isa.assembly.disassembler.located` names."""
    return (
        f"{place}: still running after {counted(count, noun)}, perhaps in an endless loop; a "
        "higher limit allows more"
    )


def leading_labels(text: str) -> list[str]:
    """Labels at the start of a line of assembly, even if the rest is malformed."""
    labels = []
    place = 0
    while match := _LEADING_LABEL.match(text, place, MAX_LINE):
        labels.append(match[1])
        place = match.end()
    return labels


#: Up to the column of the source.
_INDENT = " " * 22


def listing(program: Program) -> str:
    """A table of word address (decimal), word (hexadecimal), line number and source line.

    A line that assembles to several words stands next to the first of them. Words without a source
    line show their labels alone.
    """
    labels = program.labels
    lines = []
    previous = None
    for address, word in enumerate(program.words):
        source = program.source.get(address)
        row = f"{address:5}  {word:08x}"
        for name in labels.get(address, []):
            # A label on its instruction's line is part of the source text.
            if source is None or name not in leading_labels(source.text):
                lines.append(f"{_INDENT}{name}:")
        if source is not None and source != previous:
            row += f"  {source.line:5}  {source.text.rstrip()}"
        previous = source
        lines.append(row)
    for name in labels.get(len(program.words), []):
        lines.append(f"{_INDENT}{name}:")
    return "".join(f"{line}\n" for line in lines)
