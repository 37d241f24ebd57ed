"""``vip debug``."""

import cmd
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import vip
from vip.cli.console import console, warn
from vip.cli.tables.debug import show_reply
from vip.debugging.commands import COMMANDS, Session
from vip.debugging.errors import DebugError, ExpectationError
from vip.output import write_json

from .option_groups.design import ConfigOption, DesignPresetOption, chosen
from .option_groups.memory import MemoryOption
from .options import JsonOption, ParametersOption, reading

__all__ = ["debug"]


class _Prompt(cmd.Cmd):
    """The prompt: each line is a command of the session; an empty one repeats the last."""

    prompt = "(vip) "

    def __init__(self, session: Session, note: Callable[[str, object], None]) -> None:
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
        self._note(line, reply.to_json())
        show_reply(reply, self._session.debugger.points)
        return False

    def completenames(self, text: str, *ignored: object) -> list[str]:
        names = [command.name for command in COMMANDS]
        return [name for name in (*names, "help", "quit") if name.startswith(text)]

    def completedefault(self, *ignored: object) -> list[str]:
        text = str(ignored[0])
        names = (*self._session.debugger.program.symbols, "scratchpad", "memory")
        return [name for name in names if name.startswith(text)]


def _show_help() -> None:
    table = Table(box=None, show_header=False)
    for command in COMMANDS:
        table.add_row(f"{command.name}, {command.short}", command.arguments, command.summary)
    table.add_row("quit, q", "", "end; so does the end of the input")
    console.print(table)


def debug(
    program: Annotated[
        Path,
        typer.Argument(
            help="Program file, or assembly (.s).", metavar="PROGRAM", callback=reading()
        ),
    ],
    preset_name: DesignPresetOption = None,
    config: ConfigOption = None,
    memory: MemoryOption = None,
    parameters: ParametersOption = 0,
    limit: Annotated[
        int, typer.Option(help="Most instructions of one continue.", min=1, metavar="N")
    ] = 100_000_000,
    script: Annotated[
        Path | None,
        typer.Option(
            help="Take the commands from a file, one a line, # before comments.",
            metavar="FILE",
            callback=reading(),
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Debug a program on the instruction set simulator, forwards and backwards.

    Breakpoints on labels and addresses, watchpoints on the scratchpad, memory and registers; the
    command help at the prompt lists all. A script ends at its first error with exit code 2, at an
    expectation that fails with 1.

    Example: vip debug kernel.s --memory image.bin

    Example: vip debug kernel.vip --script session.txt --json session.json
    """
    replies: list[dict[str, object]] = []

    def note(line: str, reply: object) -> None:
        replies.append({"command": line, "reply": reply})

    with vip.debug(
        program,
        chosen(preset_name, config),
        memory=memory,
        parameters=parameters,
        limit=limit,
    ) as debugger:
        session = Session(debugger)
        failed = False
        if script is None:
            show_reply(debugger.where(), {})
            _Prompt(session, note).cmdloop()
        else:
            failed = not _run_script(session, script, note)
    write_json(json, {"replies": replies, "failed": failed})
    if failed:
        raise typer.Exit(1)


def _run_script(session: Session, script: Path, note: Callable[[str, object], None]) -> bool:
    """Do the commands of ``script``; whether all expectations are met."""
    try:
        for line, reply in session.script(script):
            console.print(f"{_Prompt.prompt}{line}", soft_wrap=True)
            note(line, reply.to_json())
            show_reply(reply, session.debugger.points)
    except ExpectationError as error:
        warn(str(error))
        return False
    return True
