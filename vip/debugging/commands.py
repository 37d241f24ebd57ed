"""The debugger's commands as text, the same at the prompt and in scripts."""

import re
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from pathlib import Path
from typing import cast

from isa.accesses import Space
from support.errors import clipped, printable, unknown
from support.files import read_bytes

from .debugger import Debugger
from .views import (
    DebugError,
    ExpectationError,
    Kind,
    ListedWord,
    Matrix,
    Point,
    Stop,
    element_type,
)

_SCRIPT_BYTES = 1 << 20
_SHAPE = re.compile(r"(?:([0-9]{1,6})x)?([0-9]{1,6})")
_DEFAULT_TYPE = "i16"
_DEFAULT_COLUMNS = "8"
_WORDS = 8


#: Registers by number; words of the program, or its points; a text says what else was done.
Reply = Stop | Matrix | dict[int, int] | tuple[ListedWord, ...] | tuple[Point, ...] | str


def reply_json(reply: Reply) -> dict[str, object]:
    """``reply`` as plain data."""
    match reply:
        case str():
            return {"text": reply}
        case dict():
            return {f"r{number}": value for number, value in reply.items()}
        case tuple():
            words = any(isinstance(line, ListedWord) for line in reply)
            return {"words" if words else "points": [line.to_json() for line in reply]}
    return reply.to_json()


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
        name, *arguments = line.split() or [""]
        name, (_, usage, _, action) = _command(name)
        try:
            signature(action).bind(self, *arguments)
        except TypeError:
            raise DebugError(f"usage: {f'{name} {usage}'.strip()}") from None
        return action(self, *arguments)

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
        return (self.debugger.break_at(place),)

    def _watch(
        self, space: str, start: str | None = None, size: str | None = None, kind: str = "write"
    ) -> Reply:
        if start is None:
            return (self.debugger.watch("register", _register(space)),)
        if size is None:
            raise DebugError("watch needs the start and the number of bytes, or a register")
        if kind not in ("write", "read", "access"):
            raise DebugError(f"{_shown(kind)} is not an access: write, read or access")
        number = self.debugger.number
        return (self.debugger.watch(_space(space), number(start), number(size), cast(Kind, kind)),)

    def _points(self) -> Reply:
        return tuple(self.debugger.points.values())

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
        return self.debugger.listing(place, self._count(count))

    def _registers(self, *names: str) -> Reply:
        return self.debugger.registers(*map(_register, names))

    def _scratchpad(
        self, start: str, shape: str = _DEFAULT_COLUMNS, kind: str | None = None
    ) -> Reply:
        return self._matrix("scratchpad", start, shape, kind)

    def _memory(self, start: str, shape: str = _DEFAULT_COLUMNS, kind: str | None = None) -> Reply:
        return self._matrix("memory", start, shape, kind)

    def _matrix(self, space: Space, start: str, shape: str, kind: str | None) -> Matrix:
        if kind is None and not _SHAPE.fullmatch(shape):
            shape, kind = _DEFAULT_COLUMNS, shape
        match = _SHAPE.fullmatch(shape)
        if match is None:
            raise DebugError(
                f"{_shown(shape)} is not a shape: COLUMNS or ROWSxCOLUMNS, such as 4x16"
            )
        rows, columns = int(match[1] or 1), int(match[2])
        at = self.debugger.number(start)
        return self.debugger.matrix(space, at, rows, columns, element_type(kind or _DEFAULT_TYPE))

    def _expect(self, subject: str, value: str, *others: str) -> Reply:
        values = (value, *others)
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
            matrix = self._matrix(_space(subject), values[0], columns, values[1])
            elements = [matrix.type.text(int(number)) for number in matrix.values[0]]
            actual, expected = " ".join(elements), " ".join(values[2:])
            text = f"{subject} has {actual}"
        else:
            (number,) = self.debugger.registers(_register(subject)).values()
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


#: Name of each command, in the order of help -> its short name, the form of its arguments, what it
#: does in words, and what does it.
COMMANDS: Mapping[str, tuple[str, str, str, Callable[..., Reply]]] = {
    "break": (
        "b",
        "PLACE",
        "stop before a label, LABEL+N, word address or :LINE",
        DebugSession._break,
    ),
    "watch": (
        "w",
        "scratchpad|memory START BYTES [write|read|access], or rN",
        "stop after an access to bytes, or a change of a register",
        DebugSession._watch,
    ),
    "points": ("p", "", "list breakpoints and watchpoints", DebugSession._points),
    "delete": ("d", "NUMBER", "remove a point", DebugSession._delete),
    "step": ("s", "[N]", "execute N instructions", DebugSession._step),
    "back": ("bs", "[N]", "take N instructions back", DebugSession._back),
    "continue": ("c", "", "execute until a point or the end", DebugSession._continue),
    "reverse": ("rc", "", "go back to the last point, or to the launch", DebugSession._reverse),
    "go": ("g", "TIME", "go to where TIME instructions are executed", DebugSession._go),
    "where": ("i", "", "show where the program is", DebugSession._where),
    "list": ("l", "[PLACE] [N]", "disassemble N words, with their source", DebugSession._list),
    "registers": (
        "r",
        "[rN ...]",
        "show registers, or all that are not 0",
        DebugSession._registers,
    ),
    "scratchpad": (
        "x",
        "START [[ROWSx]COLUMNS] [TYPE]",
        "show the scratchpad as a matrix of a type such as i16, u8, x64, i16/8",
        DebugSession._scratchpad,
    ),
    "memory": (
        "m",
        "START [[ROWSx]COLUMNS] [TYPE]",
        "the same for the memory",
        DebugSession._memory,
    ),
    "expect": (
        "e",
        "rN VALUE, scratchpad|memory START TYPE VALUE ..., state WORD, or at PLACE",
        "fail unless this is so",
        DebugSession._expect,
    ),
}


def _shown(text: str) -> str:
    return repr(printable(clipped(text, 40)))


def _command(name: str) -> tuple[str, tuple[str, str, str, Callable[..., Reply]]]:
    for full, command in COMMANDS.items():
        if name in (full, command[0]):
            return full, command
    raise DebugError(unknown("command", printable(clipped(name, 40)), COMMANDS))


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
