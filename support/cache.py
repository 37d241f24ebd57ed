"""The cache folder: simulators, synthesis results, proofs."""

import hashlib
import json
import os
from pathlib import Path

from .errors import VipError

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
