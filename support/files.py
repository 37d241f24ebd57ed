"""Atomic writes, and reads limited to regular files of a sane size."""

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .scratch import own_file, sweep_files

#: Characters in a temporary file's name: few enough to be legal wherever the file's own name is.
_SHOWN = 40
#: A file system with fewer free bytes counts as full.
_FULL_BYTES = 1 << 20


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Within the block, an :class:`OSError` that names no file, such as a full disk's, gets the
    name ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def read_bytes(path: Path | str, limit: int) -> bytes:
    """The contents of the regular file ``path``.

    Parameters:
        limit: most bytes allowed.

    Raises:
        OSError: it can't be read, has more than ``limit`` bytes, or is not a regular file: pipes
            and devices are never opened, as they may block or never end. The exception names
            ``path``.
    """
    name = str(path)
    check_regular(path)
    with open(path, "rb", opener=open_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise _not_regular(name)
        content = b"" if status.st_size > limit else file.read(limit + 1)
    if status.st_size > limit or len(content) > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes", name)
    return content


def open_without_waiting(path: str, flags: int) -> int:
    """An opener for :func:`open`: a file that was regular may be a pipe by now, and opening a pipe
    without a writer must not block."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def check_regular(path: Path | str) -> int:
    """Bytes of the regular file ``path``, without opening it.

    Raises:
        OSError: there is none, or it is something else. The exception names ``path``.
    """
    name = str(path)
    try:
        status = os.stat(path)
    except ValueError as error:
        # A name with a NUL.
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), name) from error
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(status.st_mode):
        raise _not_regular(name)
    return status.st_size


def _not_regular(name: str) -> OSError:
    return OSError(errno.EINVAL, "it is a pipe or device, not a regular file", name)


def full_folder(*folders: Path | str) -> str | None:
    """The first of ``folders`` whose file system has less than 1 MiB left; None if all have more.

    Tools seldom report a full disk.
    """
    return next((str(path) for path in folders if shutil.disk_usage(path).free < _FULL_BYTES), None)


def write_file(path: Path, content: str | bytes) -> None:
    """Write ``content`` to ``path`` directly, in a folder that nobody else reads yet.

    Parameters:
        content: text is written as UTF-8, line ends unchanged.

    Raises:
        OSError: it can't be written; a part of it may remain. The exception names ``path``.
    """
    with naming(path):
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def copy_file(source: Path, path: Path) -> None:
    """Write the contents of the file ``source`` to ``path``; see :func:`write_file`.

    Raises:
        OSError: as there, or ``source`` can't be read.
    """
    with source.open("rb") as contents, naming(path), path.open("wb") as file:
        shutil.copyfileobj(contents, file)


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write ``content`` to ``path`` so that no reader ever sees a part of it.

    A link is followed and stays; the file that it names is replaced. A replaced file keeps its mode
    and, where the user has the right, its owner. Devices and pipes are written to, never replaced.

    Raises:
        OSError: it can't be written; an earlier file is unchanged, but not a device or pipe.
            The exception names ``path``, not the temporary file.
    """
    _write(path, lambda file: file.write(content))


def copy_atomically(source: Path, path: Path) -> None:
    """Write the contents of the file ``source`` to ``path``; see :func:`write_atomically`.

    Raises:
        OSError: as there, or ``source`` can't be read.
    """
    with source.open("rb") as contents:
        _write(path, lambda file: shutil.copyfileobj(contents, file))


def _write(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    try:
        _write_to(path, fill)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error


def _write_to(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    try:
        before = os.stat(path)
    except FileNotFoundError:
        before = None
    if before is None or stat.S_ISREG(before.st_mode):
        _replace(Path(os.path.realpath(path)), before, fill)
    elif stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    else:
        _write_through(path, fill)


def _write_through(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    # A pipe without a reader is refused: waiting for one might never end.
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    os.set_blocking(handle, True)
    with os.fdopen(handle, "wb") as file:
        fill(file)


def _replace(
    target: Path, before: os.stat_result | None, fill: Callable[[IO[bytes]], object]
) -> None:
    if before is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    prefix = f".{target.name[:_SHOWN]}.vip-"
    sweep_files(target.parent, prefix)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=prefix)
    try:
        with os.fdopen(handle, "wb") as file:
            own_file(handle)
            fill(file)
            _take_over(handle, before)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _take_over(handle: int, before: os.stat_result | None) -> None:
    """Give the new file the mode and owner of its predecessor ``before``, or the usual mode."""
    if before is None:
        # mkstemp lets only the owner read; the user's file gets the usual mode.
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(handle, 0o666 & ~mask)
        return
    status = os.fstat(handle)
    if (status.st_uid, status.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(handle, before.st_uid, before.st_gid)
        except PermissionError:
            # A file of another user: it must also lose its set-user bits.
            os.fchmod(handle, before.st_mode & 0o777)
            return
    os.fchmod(handle, stat.S_IMODE(before.st_mode))
