"""Contents of the folder of a case: files of any kind."""

import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

#: Files larger than this are compared by size and time alone: they are holes.
_COMPARED_BYTES = 1 << 20


@dataclass(frozen=True)
class Item:
    """A file, folder, pipe, socket or link.

    Attributes:
        name: relative to the folder. content: of a file.
        kind: what it is. target: of a link. size: of a file of nothing but a hole.
        mode: permissions; None: the usual ones.
    """

    name: str
    content: bytes = b""
    kind: Literal["file", "folder", "pipe", "socket", "link", "hard link", "hole"] = "file"
    target: str = ""
    size: int = 0
    mode: int | None = None


def make(item: Item, folder: Path) -> None:
    """Make ``item`` in ``folder``."""
    path = folder / item.name
    if item.kind == "folder":
        path.mkdir(exist_ok=True)
    elif item.kind == "pipe":
        os.mkfifo(path)
    elif item.kind == "socket":
        # The name of a socket may have some hundred characters.
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(item.name)
    elif item.kind == "link":
        path.symlink_to(item.target)
    elif item.kind == "hard link":
        path.hardlink_to(folder / item.target)
    elif item.kind == "hole":
        with path.open("wb") as file:
            file.truncate(item.size)
    else:
        path.write_bytes(item.content)
    if item.mode is not None:
        path.chmod(item.mode)


def listing(folder: Path) -> dict[str, object]:
    """All that is in ``folder``: name -> what it is, so that any change shows."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        held = path.lstat()
        content: object = None
        if stat.S_ISREG(held.st_mode) and held.st_size <= _COMPARED_BYTES and held.st_mode & 0o400:
            content = path.read_bytes()
        elif stat.S_ISLNK(held.st_mode):
            content = path.readlink()
        found[str(path.relative_to(folder))] = (
            held.st_mode,
            held.st_ino,
            held.st_size,
            held.st_mtime_ns,
            content,
        )
    return found
