"""The files that a call of a command reads and writes, checked together before any work.

A parameter that names a file or folder has a callback of :mod:`vip.cli.commands.options`, which
declares it; a command declares other files, such as an output with a default name, in its body.
"""

import errno
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from support.files import check_regular

from .errors import UserError


@dataclass(frozen=True)
class _Place:
    """A file or folder, with the data that identify it under any of its names.

    Attributes:
        real: its path without links.
        node: device and inode; None if it does not exist yet.
        role: the option or argument that names it, for messages.
    """

    real: str
    node: tuple[int, int] | None
    role: str

    def is_same(self, other: "_Place") -> bool:
        return self.real == other.real or (self.node is not None and self.node == other.node)

    def holds(self, other: "_Place") -> bool:
        return other.real.startswith(self.real.rstrip(os.sep) + os.sep)


class FileArguments:
    """Inputs and outputs of one call. Each method checks a file against all earlier ones."""

    def __init__(self) -> None:
        self._inputs: list[_Place] = []
        self._outputs: list[_Place] = []
        self._replaced: list[_Place] = []
        self._pipes: list[int] = []

    def reads(self, path: Path, role: str) -> None:
        """Declare an input.

        Parameters:
            role: the option or argument that names it.

        Raises:
            UserError: the file is missing, not readable, not regular, or also an output.
        """
        try:
            check_regular(path)
            if not os.access(path, os.R_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            is_program = isinstance(error, FileNotFoundError) and not role.startswith("--")
            meant = _meant(path) if is_program else ""
            raise UserError(f"{path}: can't be read: {error.strerror}{meant}") from error
        place = _place(path, role)
        for output in self._outputs:
            if output.is_same(place):
                raise _also_input(path, output, place)
        for folder in self._replaced:
            if folder.holds(place):
                raise UserError(f"{path}: {role} is in the folder that {folder.role} replaces")
        self._inputs.append(place)

    def writes(self, path: Path, role: str, endings: Sequence[str] = ()) -> None:
        """Declare an output file. A pipe is opened, so that its reader waits until :meth:`close`.

        Parameters:
            role: the option or argument that names it.
            endings: what its name may end in, each with its dot, in lower case; none: anything.

        Raises:
            UserError: it can't be written, or is an input or another output of the call.
        """
        if endings and path.suffix.lower() not in endings:
            raise UserError(f"{path}: {role} must end in {' or '.join(endings)}")
        regular = self._check_writable(path)
        if not regular:
            return
        place = _place(path, role)
        self._check_free(path, place)
        for folder in self._replaced:
            if folder.holds(place):
                raise UserError(f"{path}: {role} is in the folder that {folder.role} replaces")
        self._outputs.append(place)

    def fills(
        self,
        path: Path,
        role: str,
        *,
        files: Iterable[str] = (),
        replaced: bool = False,
    ) -> None:
        """Declare an output folder, which is created with its parents if missing.

        Parameters:
            role: the option or argument that names it.
            files: names of the files in it that are written.
            replaced: whether the command replaces the folder, so that it may contain nothing else.

        Raises:
            UserError: not a folder, not writable, or it contains an input or another output that
                would be lost.
        """
        try:
            _check_folder(path)
        except OSError as error:
            raise _unwritable(path, error.strerror or str(error)) from error
        place = _place(path, role)
        self._check_free(path, place)
        if replaced:
            for inside in (*self._inputs, *self._outputs):
                if place.holds(inside):
                    raise UserError(f"{path}: {role} would replace {inside.role}, which is in it")
            self._replaced.append(place)
        for name in files if path.is_dir() else ():
            self.writes(path / name, role)

    def close(self) -> None:
        """Close the pipes."""
        while self._pipes:
            os.close(self._pipes.pop())

    def _check_free(self, path: Path, place: _Place) -> None:
        """Reject a ``place`` to write that is an input or another output."""
        for source in self._inputs:
            if source.is_same(place):
                raise _also_input(path, place, source)
        for output in (*self._outputs, *self._replaced):
            if output.is_same(place):
                raise UserError(f"{path}: {output.role} and {place.role} name the same file")

    def _check_writable(self, path: Path) -> bool:
        """Whether ``path`` is or becomes a regular file; rejects a path that can't be written."""
        try:
            return self._is_regular(path)
        except OSError as error:
            raise _unwritable(path, error.strerror or str(error)) from error

    def _is_regular(self, path: Path) -> bool:
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            parent = Path(_real(path)).parent
            if not parent.is_dir():
                folder = path.parent if not path.is_symlink() else parent
                raise _unwritable(path, f"there is no folder {folder}") from None
            _check_right(parent)
            return True
        if stat.S_ISDIR(mode):
            raise _unwritable(path, "it is a folder")
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if stat.S_ISREG(mode):
            _check_right(Path(_real(path)).parent)
            return True
        if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode):
            raise _unwritable(path, "it is a socket or a device")
        if stat.S_ISFIFO(mode):
            try:
                self._pipes.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                raise _unwritable(path, "it is a pipe that nobody reads") from None
        return False


def _meant(path: Path) -> str:
    """A question: the programs whose names are ``path`` plus an ending."""
    meant = [name for end in (".s", ".vip") if os.path.isfile(name := f"{path}{end}")]
    return f"; did you mean {' or '.join(meant)}?" if meant else ""


def _place(path: Path, role: str) -> _Place:
    try:
        status = os.stat(path)
    except OSError:
        return _Place(_real(path), None, role)
    return _Place(_real(path), (status.st_dev, status.st_ino), role)


def _real(path: Path) -> str:
    try:
        return os.path.realpath(path)
    except FileNotFoundError:
        # Anything else that is missing is not an error here.
        raise _unwritable(path, "the current folder was removed") from None


def _check_folder(path: Path) -> None:
    folder = Path(_real(path))
    # An impossible name is an error; an unused name is not.
    with suppress(FileNotFoundError, NotADirectoryError):
        os.stat(folder)
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise _unwritable(path, f"{folder} is not a folder")
    _check_right(folder)


def _check_right(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"no right to write to {folder}")


def _unwritable(path: Path, reason: str) -> UserError:
    return UserError(f"{path}: can't be written: {reason}")


def _also_input(path: Path, output: _Place, source: _Place) -> UserError:
    return UserError(f"{path}: {output.role} would overwrite the input {source.role}")
