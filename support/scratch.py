"""Temporary files that are cleaned up even if their process is killed.

Each folder holds a file locked by its process; the system releases the lock when the process ends,
however that happens. A later process recognises unused folders by this and removes them.
"""

import atexit
import errno
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOCK = "lock"
_RUN = "run-"
#: Folders for temporary files on most systems.
_PLAIN = ("/tmp", "/var/tmp")
#: Seconds after which a folder without a lock is no longer one that is just being made.
_MAKING_SECONDS = 3600
#: The same of a file, which is locked at once.
_LOCKING_SECONDS = 10


def _lock(handle: int, *, wait: bool = False) -> None:
    """Lock the file that is open as ``handle``.

    Raises:
        OSError: another process holds it, unless this is to ``wait``; or there are no locks.
    """
    # Only here: a browser has no such module, and locks nothing.
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


class _Owned:
    """A folder whose lock this process holds."""

    def __init__(self, parent: Path, prefix: str) -> None:
        self.process = os.getpid()
        self.folder = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
        try:
            # It appears locked: there is no moment in which it could seem to have no owner.
            new = self.folder / f"{_LOCK}.new"
            self._lock = new.open("w")
            _lock(self._lock.fileno(), wait=True)
            new.rename(self.folder / _LOCK)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def remove(self) -> None:
        """Remove it, unless this is a process that was forked off from the owner."""
        if self.process == os.getpid():
            shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()


@contextmanager
def owned_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new, empty folder below ``parent``, removed when the statement is left.

    Those that killed processes left in ``parent`` with the same ``prefix`` are removed first.

    Parameters:
        parent: a folder that exists. prefix: of the name that appears in it, not empty.

    Raises:
        OSError: it can't be made.
    """
    sweep(parent, prefix)
    owned = _Owned(parent, prefix)
    try:
        # Without the lock.
        files = owned.folder / "files"
        files.mkdir()
        yield files
    finally:
        owned.remove()


def sweep(parent: Path, prefix: str) -> None:
    """Remove the folders that killed processes left in ``parent`` with names from ``prefix`` on.

    Folders of processes that live stay, and so does all that can't be removed.
    """
    with suppress(OSError):
        for folder in list(parent.glob(f"{_escaped(prefix)}*")):
            with suppress(OSError):
                _remove_dead(folder)


def _escaped(prefix: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in prefix)


def _remove_dead(folder: Path) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return
    try:
        file = (folder / _LOCK).open("r+")
    except FileNotFoundError:
        if time.time() - status.st_mtime > _MAKING_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
        return
    with file:
        # Refused, with an OSError, while the owner lives.
        _lock(file.fileno())
        shutil.rmtree(folder, ignore_errors=True)


def own_file(handle: int) -> None:
    """Keep the file that is open as ``handle`` from :func:`sweep_files` until it is closed."""
    # Some file systems have no locks; then nothing is swept there either.
    with suppress(OSError):
        _lock(handle)


def sweep_files(parent: Path, prefix: str) -> None:
    """Remove the files that killed processes left in ``parent``: those with names from ``prefix``
    on that no process has locked by :func:`own_file`."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                with suppress(OSError):
                    _remove_dead_file(Path(entry.path))


def _remove_dead_file(path: Path) -> None:
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # Refused, with an OSError, while the owner writes.
        _lock(handle)
        status = os.fstat(handle)
        # A younger one may be about to be locked.
        if stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime > _LOCKING_SECONDS:
            path.unlink()
    finally:
        os.close(handle)


class _Run:
    """The folder of all temporary files of this process, there while there are any."""

    def __init__(self) -> None:
        self._owned: _Owned | None = None
        # An image without references may be removed at any moment, also in here.
        self._lock = threading.RLock()
        atexit.register(self._end)

    def make(self, make: Callable[[Path], str]) -> Path:
        """The result of ``make`` in the folder."""
        with self._lock:
            return Path(make(self._place()))

    def release(self) -> None:
        """Remove the folder if nothing is in it any more."""
        with self._lock:
            owned = self._owned
            if owned is None or owned.process != os.getpid():
                return
            with suppress(OSError):
                if os.listdir(owned.folder) != [_LOCK]:
                    return
            self._end()

    def _end(self) -> None:
        owned, self._owned = self._owned, None
        if owned is not None:
            owned.remove()
            # The last process of the user's removes that too.
            with suppress(OSError):
                owned.folder.parent.rmdir()

    def _place(self) -> Path:
        owned = self._owned
        # A process that was forked off has one of its own.
        if owned is None or owned.process != os.getpid() or not owned.folder.is_dir():
            owned = self._owned = _new_run()
        return owned.folder


def _new_run() -> _Owned:
    while True:
        try:
            parent = _user_folder()
            sweep(parent, _RUN)
            return _Owned(parent, _RUN)
        except FileNotFoundError:
            # The last other process has just removed the user's folder; or there is none for it.
            if not Path(tempfile.gettempdir()).is_dir():
                raise


_run = _Run()


def _user_folder() -> Path:
    """The folder of the user's processes in the system's folder of temporary files.

    Raises:
        OSError: it can't be made, or belongs to another user.
    """
    folder = Path(tempfile.gettempdir()) / f"vip-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "it belongs to another user", str(folder))
    return folder


@contextmanager
def scratch_folder(label: str) -> Iterator[Path]:
    """A new, empty folder for temporary files, removed when the statement is left, and by a later
    process if this one is killed.

    Parameters:
        label: begins its name, for people who look at the folder.

    Raises:
        OSError: it can't be made.
    """
    folder = _run.make(lambda place: tempfile.mkdtemp(dir=place, prefix=f"{label}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _run.release()


def is_plain(path: Path | str) -> bool:
    """Whether ``path`` has only letters, digits and ``/ . _ - + @``: as make and shells take it
    without quotes, which make doesn't know."""
    return all(character.isalnum() or character in "/._-+@" for character in str(path))


@contextmanager
def plain_folder(label: str) -> Iterator[Path]:
    """A :func:`scratch_folder` whose path is plain (:func:`is_plain`), in ``/tmp`` or ``/var/tmp``
    if that of the folder for temporary files is not.

    Raises:
        OSError: it can't be made.
    """
    usual = tempfile.gettempdir()
    parents = [parent for parent in _PLAIN if os.access(parent, os.W_OK | os.X_OK)]
    with (
        scratch_folder(label)
        if is_plain(usual) or not parents
        else owned_folder(Path(parents[0]), f"vip-{os.getuid()}-{label}-")
    ) as folder:
        if not is_plain(folder):
            raise OSError(
                errno.EINVAL,
                "make can't work here; TMPDIR can name a folder without spaces and quotes",
                usual,
            )
        yield folder


def scratch_file(label: str, suffix: str) -> Path:
    """A new, empty file for temporary contents, which :func:`remove_scratch` removes; a later
    process does so if this one is killed.

    Parameters:
        label: begins its name. suffix: ends it.

    Raises:
        OSError: it can't be made.
    """

    def make(place: Path) -> str:
        handle, name = tempfile.mkstemp(dir=place, prefix=f"{label}-", suffix=suffix)
        os.close(handle)
        return name

    return _run.make(make)


def remove_scratch(path: Path) -> None:
    """Remove a file of :func:`scratch_file`, if it is still there."""
    with suppress(FileNotFoundError):
        path.unlink()
    _run.release()
