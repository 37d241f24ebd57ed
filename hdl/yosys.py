"""Runs Yosys in a separate process: its messages go to a file, its failures become exceptions.

When a command fails, the library exits the process; it also writes to standard output. Programs
that use VIP must see neither.
"""

import os
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from support.errors import VipError
from support.extras import need
from support.files import full_folder, naming, write_file
from support.processes import tool
from support.scratch import plain_folder

_WORKER = (
    "import sys\n"
    "sys.path.insert(0, sys.argv[2])\n"
    "from pyosys import libyosys\n"
    "for line in open(sys.argv[1], encoding='utf-8'):\n"
    "    if line.strip():\n"
    "        libyosys.run_pass(line.strip())\n"
)


class YosysError(VipError):
    """Yosys refused a command or ended early; the message names the step and Yosys's own line."""


def need_yosys() -> None:
    """Check before the work that Yosys is installed.

    Raises:
        MissingExtraError: it is not.
    """
    need("pyosys", "Verilog and synthesis")


def yosys_version() -> str:
    """Version of the Yosys in use; part of the key of every cached result.

    Raises:
        MissingExtraError: there is none.
    """
    need_yosys()
    return version("pyosys")


def _package() -> Path:
    spec = find_spec("pyosys")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def run_yosys(
    commands: list[str],
    *,
    purpose: str,
    folder: Path | None = None,
    log: Path | None = None,
) -> str:
    """Run ``commands`` in order in a new Yosys.

    Parameters:
        commands: one Yosys command each, on one line.
        purpose: names the work in error messages, e.g. ``area of arc``.
        folder: working directory. File names are relative to it, as Yosys does not accept every
            path.
        log: file for Yosys's messages; by default they are deleted at the end.

    Returns:
        Yosys's messages.

    Raises:
        YosysError: a command failed, or Yosys ended before the last one.
        MissingExtraError: there is no Yosys.
    """
    need_yosys()
    for command in commands:
        if len(command.splitlines()) != 1:
            raise YosysError(f"{purpose}: a Yosys command must be one line, not {command!r}")
    with plain_folder("yosys") as scratch:
        script = scratch / "script.ys"
        # Yosys starts ABC, and ABC opens files, only by paths without blanks or quotes.
        (scratch / "pyosys").symlink_to(_package())
        write_file(script, "".join(f"{command}\n" for command in commands))
        output = log if log is not None else scratch / "log"
        errors = scratch / "errors"
        with output.open("wb", buffering=0) as sink, errors.open("wb") as complaints:
            worker = [sys.executable, "-I", "-c", _WORKER, str(script), str(scratch)]
            current = commands[0] if commands else ""
            marker = b"-- Running command `"
            environment = {**os.environ, "TMPDIR": str(scratch)}
            with tool(
                worker, stdout=subprocess.PIPE, stderr=complaints, cwd=folder, env=environment
            ) as process:
                assert process.stdout is not None
                for raw in process.stdout:
                    with naming(output):
                        sink.write(raw)
                    if raw.startswith(marker):
                        current = raw[len(marker) :].decode(errors="replace").rsplit("'", 1)[0]
                process.wait()
        text = output.read_text(encoding="utf-8", errors="replace")
        if process.returncode != 0:
            said = errors.read_text(encoding="utf-8", errors="replace").splitlines()
            full = full_folder(scratch, folder or scratch)
            reason = f"no space is left in {full}" if full else _reason(said, text)
            raise YosysError(f"{purpose}: Yosys failed in '{current}': {reason}")
        return text


def _reason(errors: list[str], log: str) -> str:
    for line in [*errors, *log.splitlines()]:
        if line.startswith("ERROR:"):
            return line.removeprefix("ERROR:").strip()
    last = [line for line in [*log.splitlines(), *errors] if line.strip()]
    return last[-1].strip() if last else "no message"
