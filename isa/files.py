"""Files that appear whole or not at all."""

import os
import tempfile
from pathlib import Path

__all__ = ["write_atomically"]


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write ``content`` to ``path`` so that no reader ever sees a part of it.

    Raises:
        OSError: it can't be written; what was there before is unchanged.
    """
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
