"""The debugger's commands as text, the same at the prompt and in scripts."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from isa.accesses import Space
from support.errors import clipped, printable, unknown
from support.files import read_bytes

from .debugger import Debugger
from .points import DebugError, ExpectationError, Kind, Point
from .views import ListedWord, Matrix, Registers, Stop, element_type

_SCRIPT_BYTES = 1 << 20
_SHAPE = re.compile(r"(?:([0-9]{1,6})x)?([0-9]{1,6})")
_DEFAULT_TYPE = "i16"
_DEFAULT_COLUMNS = "8"
_WORDS = 8


@dataclass(frozen=True)
class Listing:
    """Words of the program, or breakpoints and watchpoints; ``items`` says which."""

    items: Literal["words", "points"]
    lines: Sequence[ListedWord | Point]

    def to_json(self) -> dict[str, object]:
        """The same as plain data."""
        return {self.items: [line.to_json() for line in self.lines]}


#: A text says what a command without a view did.
Reply = Stop | Registers | Matrix | Listing | str


def reply_json(reply: Reply) -> dict[str, object]:
    """``reply`` as plain data."""
    return {"text": reply} if isinstance(reply, str) else reply.to_json()


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        name, short: as typed. arguments: their form. summary: what it does.
        least, most: numbers of arguments. action: does it, given the session and the arguments.
    """

    name: str
    short: str
    arguments: str
    summary: str
    least: int
    most: int
    action: Callable[..., Reply]


def read_script(path: Path) -> tuple[tuple[int, str], ...]:
    """Line number and text of the commands in a file; ``#`` begins a comment.

    Raises:
        DebugError: not a text file. OSError: it can't be read, or exceeds a megabyte.
    """
    try:
        text = read_bytes(path, _SCRIPT_BYTES).decode()
    except UnicodeDecodeError:
        raise DebugError(f"{path}: a script must be UTF-8 text") from None
    lines = (line.partition("#")[0].strip() for line in text.split("\n"))
    return tuple((number, line) for number, line in enumerate(lines, 1) if line)


class DebugSession:
    """Text commands on a debugger.

    Parameters:
        debugger: the one they control.
    """

    def __init__(self, debugger: Debugger) -> None:
        self.debugger = debugger

    def execute(self, line: str) -> Reply:
        """Execute one command.

        Raises:
            DebugError: an unknown command, or arguments that can't be used.
            ExpectationError: the expectation of an ``expect`` fails.
        """
        words = line.split()
        command = _command(words[0] if words else "")
        arguments = words[1:]
        if not command.least <= len(arguments) <= command.most:
            raise DebugError(f"usage: {f'{command.name} {command.arguments}'.strip()}")
        return command.action(self, *arguments)

    def script(self, path: Path) -> Iterator[tuple[str, Reply]]:
        """Execute the commands of a file; yield each with its reply.

        Raises:
            DebugError, ExpectationError: as for :meth:`execute` and :func:`read_script`; the
                message begins with the file and the line.
            OSError: the file can't be read.
        """
        for number, line in read_script(path):
            try:
                yield line, self.execute(line)
            except (DebugError, ExpectationError) as error:
                raise type(error)(f"{path}:{number}: {error}") from error

    def _count(self, text: str) -> int:
        if not text.isdecimal() or not text.isascii():
            raise DebugError(f"{_shown(text)} is not a number of instructions, words or points")
        return int(text[:20])

    def _break(self, place: str) -> Reply:
        return _points(self.debugger.break_at(place))

    def _watch(self, space: str, *rest: str) -> Reply:
        if not rest:
            return _points(self.debugger.watch("register", _register(space)))
        if len(rest) < 2:
            raise DebugError("watch needs the start and the number of bytes, or a register")
        kind = rest[2] if len(rest) > 2 else "write"
        if kind not in get_args(Kind):
            raise DebugError(f"{_shown(kind)} is not an access: write, read or access")
        start, size = (self.debugger.number(text) for text in rest[:2])
        return _points(self.debugger.watch(_space(space), start, size, kind))  # type: ignore[arg-type]

    def _points(self) -> Reply:
        return _points(*self.debugger.points.values())

    def _delete(self, number: str) -> Reply:
        return f"deleted {self.debugger.delete(self._count(number)).number}"

    def _step(self, count: str = "1") -> Reply:
        return self.debugger.step(self._count(count))

    def _back(self, count: str = "1") -> Reply:
        return self.debugger.back(self._count(count))

    def _continue(self) -> Reply:
        return self.debugger.resume()

    def _reverse(self) -> Reply:
        return self.debugger.reverse()

    def _go(self, time: str) -> Reply:
        return self.debugger.go(self._count(time))

    def _where(self) -> Reply:
        return self.debugger.where()

    def _list(self, place: str | None = None, count: str = str(_WORDS)) -> Reply:
        return Listing("words", self.debugger.listing(place, self._count(count)))

    def _registers(self, *names: str) -> Reply:
        return self.debugger.registers(*map(_register, names))

    def _scratchpad(self, start: str, *rest: str) -> Reply:
        return self._matrix("scratchpad", start, rest)

    def _memory(self, start: str, *rest: str) -> Reply:
        return self._matrix("memory", start, rest)

    def _matrix(self, space: Space, start: str, rest: Sequence[str]) -> Matrix:
        shape, kind = (*rest, *(_DEFAULT_COLUMNS, _DEFAULT_TYPE)[len(rest) :])
        if len(rest) == 1 and not _SHAPE.fullmatch(shape):
            shape, kind = _DEFAULT_COLUMNS, shape
        match = _SHAPE.fullmatch(shape)
        if match is None:
            raise DebugError(
                f"{_shown(shape)} is not a shape: COLUMNS or ROWSxCOLUMNS, such as 4x16"
            )
        rows, columns = int(match[1] or 1), int(match[2])
        at = self.debugger.number(start)
        return self.debugger.matrix(space, at, rows, columns, element_type(kind))

    def _expect(self, subject: str, *values: str) -> Reply:
        if subject == "state":
            actual, expected = str(self.debugger.where().state), values[0]
            text = f"the program is {actual}"
        elif subject == "at":
            stop = self.debugger.where()
            actual, expected = str(stop.pc), str(self.debugger.place(values[0]))
            text = f"the program is at {stop.place}"
        elif subject in ("scratchpad", "memory"):
            if len(values) < 3:
                raise DebugError(f"expect {subject} needs START TYPE VALUE ...")
            columns = str(len(values) - 2)
            matrix = self._matrix(_space(subject), values[0], (columns, values[1]))
            elements = [matrix.type.text(int(number)) for number in matrix.values[0]]
            actual, expected = " ".join(elements), " ".join(values[2:])
            text = f"{subject} has {actual}"
        else:
            number = self.debugger.registers(_register(subject)).values[_register(subject)]
            signed = number - (1 << 64) if number >> 63 else number
            expected = values[0]
            actual = (
                expected if expected in (str(number), str(signed), f"{number:#x}") else str(signed)
            )
            text = f"{subject} is {signed} ({number:#x})"
        if actual != expected:
            claim = clipped(" ".join(("expect", subject, *values)), 80)
            raise ExpectationError(f"{claim}: {text}")
        return text


#: All commands, in the order of help.
COMMANDS = (
    Command(
        "break",
        "b",
        "PLACE",
        "stop before a label, LABEL+N, word address or :LINE",
        1,
        1,
        DebugSession._break,
    ),
    Command(
        "watch",
        "w",
        "scratchpad|memory START BYTES [write|read|access], or rN",
        "stop after an access to bytes, or a change of a register",
        1,
        4,
        DebugSession._watch,
    ),
    Command("points", "p", "", "list breakpoints and watchpoints", 0, 0, DebugSession._points),
    Command("delete", "d", "NUMBER", "remove a point", 1, 1, DebugSession._delete),
    Command("step", "s", "[N]", "execute N instructions", 0, 1, DebugSession._step),
    Command("back", "bs", "[N]", "take N instructions back", 0, 1, DebugSession._back),
    Command("continue", "c", "", "execute until a point or the end", 0, 0, DebugSession._continue),
    Command(
        "reverse",
        "rc",
        "",
        "go back to the last point, or to the launch",
        0,
        0,
        DebugSession._reverse,
    ),
    Command(
        "go", "g", "TIME", "go to where TIME instructions are executed", 1, 1, DebugSession._go
    ),
    Command("where", "i", "", "show where the program is", 0, 0, DebugSession._where),
    Command(
        "list",
        "l",
        "[PLACE] [N]",
        "disassemble N words, with their source",
        0,
        2,
        DebugSession._list,
    ),
    Command(
        "registers",
        "r",
        "[rN ...]",
        "show registers, or all that are not 0",
        0,
        64,
        DebugSession._registers,
    ),
    Command(
        "scratchpad",
        "x",
        "START [[ROWSx]COLUMNS] [TYPE]",
        "show the scratchpad as a matrix of a type such as i16, u8, x64, i16/8",
        1,
        3,
        DebugSession._scratchpad,
    ),
    Command(
        "memory",
        "m",
        "START [[ROWSx]COLUMNS] [TYPE]",
        "the same for the memory",
        1,
        3,
        DebugSession._memory,
    ),
    Command(
        "expect",
        "e",
        "rN VALUE, scratchpad|memory START TYPE VALUE ..., state WORD, or at PLACE",
        "fail unless this is so",
        2,
        4099,
        DebugSession._expect,
    ),
)


def _points(*points: Point) -> Listing:
    return Listing("points", points)


def _shown(text: str) -> str:
    return repr(printable(clipped(text, 40)))


def _command(name: str) -> Command:
    for command in COMMANDS:
        if name in (command.name, command.short):
            return command
    names = [command.name for command in COMMANDS]
    raise DebugError(unknown("command", printable(clipped(name, 40)), names))


def _register(text: str) -> int:
    if not re.fullmatch("r[0-9]{1,2}", text):
        raise DebugError(f"{_shown(text)} is not a register: r0, r1 ...")
    return int(text[1:])


def _space(text: str) -> Space:
    if text == "scratchpad":
        return "scratchpad"
    if text == "memory":
        return "memory"
    raise DebugError(f"{_shown(text)} is not a memory: scratchpad or memory")
