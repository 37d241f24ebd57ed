"""Compiled objects of Verilator's runtime library, shared by all simulators.

The library is the same in each simulator but for a few definitions. Compiling it takes most of the
time of a small simulator.
"""

import hashlib
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from support.cache import build_folder
from support.files import copy_file
from support.scratch import owned_folder

__all__ = ["RuntimeObjects"]

#: File by Verilator for make: definitions that the library is compiled with, and its parts.
_CLASSES = "Vtop_classes.mk"
#: The number of units of the design does not affect the library.
_DEFINITION = re.compile(r"^VM_(?!PARALLEL_BUILDS)\w+ = \d+$", re.MULTILINE)


class RuntimeObjects:
    """The library's objects for one simulator, whose sources Verilator has written to ``work``.

    Parameters:
        work: folder in which make will run.
        compiler: command of the C++ compiler.
        parts: whatever else decides the objects: versions and options.
    """

    def __init__(self, work: Path, compiler: Sequence[str], parts: Sequence[str]) -> None:
        self._work = work
        classes = (work / _CLASSES).read_text() if (work / _CLASSES).is_file() else ""
        named = subprocess.run([*compiler, "--version"], capture_output=True, text=True)
        key = "\n".join([*_DEFINITION.findall(classes), *compiler, named.stdout, *parts])
        digest = hashlib.sha256(key.encode()).hexdigest()[:20]
        self._kept = build_folder() / "runtime" / digest if classes else None

    def lend(self) -> None:
        """Put the cached objects where make finds them, newer than their sources."""
        if self._kept is not None and self._kept.is_dir():
            for item in self._kept.iterdir():
                copy_file(item, self._work / item.name)

    def keep(self) -> None:
        """Cache the objects that make has left, unless they are cached already."""
        if self._kept is None or self._kept.is_dir():
            return
        self._kept.parent.mkdir(parents=True, exist_ok=True)
        with owned_folder(self._kept.parent, ".keeping-") as folder:
            objects = folder / "objects"
            objects.mkdir()
            for item in self._work.glob("verilated*.o"):
                copy_file(item, objects / item.name)
            try:
                objects.rename(self._kept)
            except OSError:
                # Another process was faster.
                if not self._kept.is_dir():
                    raise
