"""``vip debug``."""

import cmd
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

import vip
from support.errors import counted
from vip.cli.console import console, warn
from vip.cli.groups import Answer
from vip.cli.tables.machine import show_unset_length
from vip.debugging.commands import COMMANDS, DebugSession, Reply, reply_json
from vip.debugging.views import (
    DebugError,
    ExpectationError,
    Hit,
    ListedWord,
    Matrix,
    Point,
    Stop,
)
from vip.programs import LIMIT

from .option_groups.design import (
    DesignOption,
    MemoryOption,
    ProgramArgument,
)
from .options import ParametersOption, file_option, reading


class _Prompt(cmd.Cmd):
    """The prompt: each line is a command of the session; an empty line repeats the last one."""

    prompt = "(vip) "

    def __init__(self, session: DebugSession, note: Callable[[str, object], None]) -> None:
        super().__init__()
        self._session, self._note = session, note

    def onecmd(self, line: str) -> bool:
        words = line.split()
        if line == "EOF" or words[:1] in (["quit"], ["q"]):
            return True
        if not words:
            return self.onecmd(self.lastcmd) if self.lastcmd else False
        if words[0] == "help":
            _show_help()
            return False
        self.lastcmd = line
        try:
            reply = self._session.execute(line)
        except (DebugError, ExpectationError) as error:
            warn(str(error))
            return False
        self._note(line, reply_json(reply))
        show_reply(reply, self._session.debugger)
        return False

    def completenames(self, text: str, *ignored: object) -> list[str]:
        return [name for name in (*COMMANDS, "help", "quit") if name.startswith(text)]

    def completedefault(self, *ignored: object) -> list[str]:
        text = str(ignored[0])
        names = (*self._session.debugger.program.symbols, "scratchpad", "memory")
        return [name for name in names if name.startswith(text)]


def _grid(count: int, *, text: int = 0) -> Table:
    """Columns without heads: first text, then numbers."""
    columns = [Column() for _ in range(text)]
    columns += [Column(justify="right") for _ in range(count - text)]
    return Table.grid(*columns, padding=(0, 2, 0, 0))


def _show_help() -> None:
    lines = _grid(3, text=3)
    for name, (short, arguments, summary, _) in COMMANDS.items():
        lines.add_row(f"{name}, {short}", arguments, summary)
    lines.add_row("quit, q", "", "leave, as does the end of the input")
    console.print(lines)


def debug(
    program: ProgramArgument,
    design: DesignOption,
    memory: MemoryOption = None,
    parameters: ParametersOption = 0,
    limit: Annotated[
        int,
        typer.Option(help="Stop each continue after this many instructions.", min=1, metavar="N"),
    ] = LIMIT,
    script: Annotated[
        Path | None,
        file_option("Read commands from a file, one per line; # starts a comment.", reading()),
    ] = None,
) -> Answer:
    """Step through a program on the instruction set simulator, forwards and backwards.

    Set breakpoints on labels and addresses, and watchpoints on the scratchpad, memory and
    registers; type help at the prompt to list all commands. A script stops at its first error with
    exit code 2, or at its first failed expectation with exit code 1.

    Example: vip debug kernel.s --memory image.bin

    Example: vip debug kernel.vip --script session.txt --json session.json
    """
    replies: list[dict[str, object]] = []

    def note(line: str, reply: object) -> None:
        replies.append({"command": line, "reply": reply})

    with vip.debug(
        program,
        design,
        memory=memory,
        parameters=parameters,
        limit=limit,
    ) as debugger:
        session = DebugSession(debugger)
        failed = False
        if script is None:
            show_reply(debugger.where(), debugger)
            _Prompt(session, note).cmdloop()
        else:
            failed = not _run_script(session, script, note)
    return Answer({"replies": replies, "failed": failed}, code=1 if failed else 0)


def _run_script(session: DebugSession, script: Path, note: Callable[[str, object], None]) -> bool:
    """Execute the commands of ``script``; return whether all expectations are met."""
    try:
        for line, reply in session.script(script):
            console.print(f"{_Prompt.prompt}{line}", soft_wrap=True)
            note(line, reply_json(reply))
            show_reply(reply, session.debugger)
    except ExpectationError as error:
        warn(str(error))
        return False
    return True


#: Columns of a matrix in one part of its table.
_COLUMNS = 8
#: Bytes shown as one number, and most bytes shown.
_NUMBER_BYTES = 8
_SHOWN_BYTES = 16


def show_reply(reply: Reply, debugger: vip.Debugger) -> None:
    """Print the reply to a command of ``debugger``."""
    match reply:
        case Stop():
            _show_stop(reply, debugger.points)
            if reply.reason == "end":
                show_unset_length(debugger.executed)
        case dict():
            _show_registers(reply)
        case Matrix():
            _show_matrix(reply)
        case tuple():
            for line in reply:
                if isinstance(line, ListedWord):
                    _show_word(line)
                else:
                    console.print(_point(line))
        case _:
            console.print(reply)


def _show_registers(registers: dict[int, int]) -> None:
    rows = _grid(3, text=1)
    for number, value in registers.items():
        signed = value - (1 << 64) if value >> 63 else value
        rows.add_row(f"r{number}", f"{value:#x}", str(signed))
    console.print(rows if rows.row_count else "all registers are 0")


def _point(point: Point) -> str:
    if point.space is None:
        return f"{point.number}: break at word {point.start}"
    if point.space == "register":
        return f"{point.number}: watch r{point.start}"
    extent = f"{counted(point.size, 'byte')} of the {point.space} from {point.start:#x}"
    return f"{point.number}: watch {extent}, {point.kind}"


def _show_stop(stop: Stop, points: dict[int, Point]) -> None:
    for hit in stop.hits:
        if hit.wrote is not None:
            _show_hit(hit, points[hit.point])
    reason = {
        "launch": "at the launch",
        "limit": "stopped at the limit",
        "end": stop.state,
    }.get(stop.reason, "stopped")
    if broken := [hit for hit in stop.hits if hit.wrote is None]:
        reason = f"breakpoint {broken[0].point}"
    settings = f"VL {stop.vl}, MR {stop.mr}, FX {stop.fx}"
    if stop.fault:
        warn(stop.fault)
    count = counted(stop.time, "instruction")
    console.print(f"{reason} after {count} at {stop.place}; {settings}", soft_wrap=True)
    if stop.next is not None:
        _show_word(stop.next)


def _show_hit(hit: Hit, point: Point) -> None:
    name = f"r{point.start}" if point.space == "register" else f"{point.space} {point.start:#x}"
    does = "written" if hit.wrote else "read"
    before, after = _hexadecimal(hit.before), _hexadecimal(hit.after)
    change = f"{before} -> {after}" if hit.wrote else before
    console.print(
        f"watchpoint {hit.point}: {name} {does} by word {hit.pc}: {change}", soft_wrap=True
    )


def _hexadecimal(data: bytes) -> str:
    """A number of up to 64 bits, or the first bytes in the order of their addresses."""
    if len(data) <= _NUMBER_BYTES:
        return f"0x{data[::-1].hex()}"
    return data[:_SHOWN_BYTES].hex(" ") + (" ..." if len(data) > _SHOWN_BYTES else "")


def _show_word(word: ListedWord) -> None:
    for label in word.labels:
        console.print(f"{label}:")
    mark = ("=>" if word.current else "  ") + ("*" if word.point is not None else " ")
    line = f"{mark}{word.address:5}  {word.text:<36}"
    if word.line:
        line += f"  {word.file}:{word.line}  {word.source.strip()}"
    console.print(line.rstrip(), soft_wrap=True)


def _show_matrix(matrix: Matrix) -> None:
    rows, columns = matrix.values.shape
    step = matrix.type.size
    for first in range(0, columns, _COLUMNS):
        part = range(first, min(first + _COLUMNS, columns))
        elements = _grid(len(part) + 1)
        elements.add_row(f"{matrix.type.name} at", *map(str, part))
        for row in range(rows):
            at = matrix.start + (row * columns + first) * step
            cells = [matrix.type.text(int(matrix.values[row, column])) for column in part]
            elements.add_row(f"{at:#x}", *cells)
        console.print(elements)
