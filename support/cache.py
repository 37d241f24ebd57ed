"""The cache folder: simulators, synthesis results, proofs, and results of long runs."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .errors import VipError
from .files import write_atomically

#: Environment variable that names the folder.
FOLDER_VARIABLE = "VIP_BUILD_DIR"


class CacheError(VipError):
    """No folder for the cache; the message says how to set one."""


def build_folder() -> Path:
    """Folder of everything cached between runs, whatever the current folder.

    It is ``VIP_BUILD_DIR`` if that is set, else ``vip`` in ``XDG_CACHE_HOME`` if that is an
    absolute path, else ``~/.cache/vip``. It may not exist yet. Everything in it can be regenerated.

    Raises:
        CacheError: the user has no home folder.
    """
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # Relative paths must be ignored (XDG Base Directory Specification).
    if os.path.isabs(cache):
        return Path(cache) / "vip"
    try:
        return Path.home() / ".cache" / "vip"
    except RuntimeError:
        raise CacheError(f"no home folder for the cache; set {FOLDER_VARIABLE} to one") from None


def content_key(*parts: object) -> str:
    """A hash of plain data that decides a cached result, as 24 hexadecimal digits."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


#: Most characters of a key that is the name of its file.
_NAME = 40


class ResultCache:
    """Plain data in files, from which an interrupted series of runs resumes.

    Parameters:
        name: of the folder in :func:`build_folder`. A damaged file counts as missing.
    """

    def __init__(self, name: str) -> None:
        self._folder = build_folder() / name

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """The result of ``key``, computed by ``make`` unless cached.

        Parameters:
            key: must identify everything that decides the result, such as simulator, program and
                data.

        Raises:
            OSError: the file can't be written.
        """
        result = self.known(key)
        if result is None:
            result = make()
            self.keep(key, result)
        return result

    def known(self, key: str) -> Any:
        """The cached result of ``key``, or None."""
        try:
            return json.loads(self._file(key).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None

    def keep(self, key: str, result: Any) -> None:
        """Cache a result, which is plain data other than None.

        Raises:
            OSError: the file can't be written.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._file(key), json.dumps(result).encode())

    def _file(self, key: str) -> Path:
        is_name = key.isalnum() and len(key) <= _NAME
        return self._folder / f"{key if is_name else content_key(key)}.json"
