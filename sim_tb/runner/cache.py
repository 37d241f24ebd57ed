"""Results of long runs and emitted Verilog, cached in the build folder."""

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

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


class ResultCache:
    """Results in a file, from which an interrupted series of runs resumes.

    Parameters:
        name: of the file in the build folder (:func:`support.cache.build_folder`). A file that is
            not JSON counts as empty.
    """

    def __init__(self, name: str) -> None:
        self._path = build_folder() / f"{name}.json"

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """The result of ``key``, computed by ``make`` unless cached.

        Parameters:
            key: must identify everything that decides the result: simulator, program and data.
            make: returns plain data.

        Raises:
            OSError: the file can't be written.
        """
        results = self._read()
        if key in results:
            return results[key]
        result = make()
        self.keep(key, result)
        return result

    def known(self, key: str) -> Any:
        """The cached result of ``key``, or None."""
        return self._read().get(key)

    def keep(self, key: str, result: Any) -> None:
        """Cache a result, which is plain data.

        Parameters:
            key: as for :meth:`get`.

        Raises:
            OSError: the file can't be written.
        """
        # Other processes may have added results meanwhile.
        results = {**self._read(), key: result}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path, json.dumps(results).encode())

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self._path.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}
