"""Files that appear whole or not at all."""

import errno
import os
import tempfile
from pathlib import Path

__all__ = ["write_atomically"]


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write ``content`` to ``path`` so that no reader ever sees a part of it.

    Raises:
        OSError: it can't be written; what was there before is unchanged. The exception names
            ``path``, not the temporary file.
    """
    try:
        _write(path, content)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error


def _write(path: Path, content: bytes | memoryview) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        # mkstemp lets only the owner read; a file of the user's gets the usual rights.
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(handle, 0o666 & ~mask)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
