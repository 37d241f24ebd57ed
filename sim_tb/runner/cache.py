"""Keys of cached results, and emitted Verilog, cached in the build folder."""

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

from support.cache import build_folder
from support.coverage import coverage_folder
from support.files import write_atomically

_SOURCE_SUFFIXES = (".py", ".cpp", ".h", ".sv")


def fingerprint(*parts: bytes | str) -> str:
    """A hash of ``parts`` with 20 characters."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()[:20]


def source_digest(rooms: Sequence[str]) -> str:
    """A hash of all source files in the folders ``rooms``.

    The first call in the process decides it: later changes of files don't change the running code.
    """
    return _digest(tuple(rooms))


@cache
def _digest(rooms: tuple[str, ...]) -> str:
    root = Path(__file__).parents[2]
    parts: list[bytes | str] = []
    for room in rooms:
        for path in sorted((root / room).rglob("*")):
            if path.suffix in _SOURCE_SUFFIXES:
                parts += [path.relative_to(root).as_posix(), path.read_bytes()]
    return fingerprint(*parts)


def cached_verilog(identity: str, rooms: Sequence[str], make: Callable[[], str]) -> str:
    """Verilog, cached until the source that emits it changes.

    Parameters:
        identity: of the Verilog that ``make`` emits. rooms: folders with the source that decides
            it.
    """
    marked = ["lines"] if coverage_folder() else []
    key = fingerprint(version("amaranth"), identity, source_digest(rooms), *marked)
    folder = build_folder() / "verilog"
    file = folder / f"{key}.v"
    if not file.is_file():
        text = make()
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text.encode())
    return file.read_text()
