"""Yosys in a process of its own: its messages go to a file, its failures become exceptions.

When a command fails, the library ends its process, and it writes to standard output; a program
that uses VIP must see neither.
"""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from isa.support.errors import VipError
from isa.support.extras import need
from isa.support.processes import tool
from isa.support.scratch import scratch_folder

__all__ = ["YosysError", "quote", "run_yosys", "yosys_version"]

_WORKER = (
    "import sys\n"
    "from pyosys import libyosys\n"
    "for line in open(sys.argv[1], encoding='utf-8'):\n"
    "    if line.strip():\n"
    "        libyosys.run_pass(line.strip())\n"
)


class YosysError(VipError):
    """Yosys refused a command or ended early; the message names the step and Yosys's own line."""


def yosys_version() -> str:
    """Version of the Yosys in use; part of the key of every cached result.

    Raises:
        MissingExtraError: there is none.
    """
    need("pyosys", "Verilog and synthesis")
    return version("pyosys")


def quote(path: Path) -> str:
    """``path`` as an argument of a Yosys command.

    Raises:
        YosysError: the path holds a quotation mark or a line break, which Yosys can't be given.
    """
    text = str(path)
    if any(character in text for character in '"\n\r'):
        raise YosysError(f"Yosys can't open a path with quotation marks or line breaks: {text!r}")
    return f'"{text}"'


def run_yosys(
    commands: list[str],
    *,
    what: str,
    folder: Path | None = None,
    log: Path | None = None,
) -> str:
    """Run ``commands`` in order in a new Yosys.

    Parameters:
        commands: one Yosys command each, on one line.
        what: names the work in error messages, e.g. ``area of arc``.
        folder: working directory; ABC takes no paths with spaces, but names relative to it.
        log: file for Yosys's messages; by default they are deleted at the end.

    Returns:
        Yosys's messages.

    Raises:
        YosysError: a command failed, or Yosys ended before the last one.
        MissingExtraError: there is no Yosys.
    """
    need("pyosys", "Verilog and synthesis")
    for command in commands:
        if len(command.splitlines()) != 1:
            raise YosysError(f"{what}: a Yosys command is one line, not {command!r}")
    with scratch_folder("yosys") as own:
        script = own / "script.ys"
        script.write_text("".join(f"{command}\n" for command in commands), encoding="utf-8")
        output = log if log is not None else own / "log"
        errors = own / "errors"
        with output.open("wb") as sink, errors.open("wb") as complaints:
            worker = [sys.executable, "-I", "-c", _WORKER, str(script)]
            current = commands[0] if commands else ""
            marker = b"-- Running command `"
            with tool(worker, stdout=subprocess.PIPE, stderr=complaints, cwd=folder) as process:
                assert process.stdout is not None
                for raw in process.stdout:
                    sink.write(raw)
                    if raw.startswith(marker):
                        current = raw[len(marker) :].decode(errors="replace").rsplit("'", 1)[0]
                process.wait()
        text = output.read_text(encoding="utf-8", errors="replace")
        if process.returncode != 0:
            said = errors.read_text(encoding="utf-8", errors="replace").splitlines()
            raise YosysError(f"{what}: Yosys failed in '{current}': {_reason(said, text)}")
        return text


def _reason(errors: list[str], log: str) -> str:
    for line in [*errors, *log.splitlines()]:
        if line.startswith("ERROR:"):
            return line.removeprefix("ERROR:").strip()
    last = [line for line in [*log.splitlines(), *errors] if line.strip()]
    return last[-1].strip() if last else "no message"
