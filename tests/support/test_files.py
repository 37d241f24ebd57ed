import ast
import os
import re
import shutil
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from support import files
from support.files import copy_atomically, copy_file, read_bytes, write_atomically, write_file
from vip_rooms import ROOMS

ROOT = Path(__file__).resolve().parent.parent.parent
#: What else opens files to write, each with a name in its errors, or without contents.
_OPENS = {
    "support/command.py": 1,
    "support/scratch.py": 1,
    "hdl/yosys.py": 2,
    "sim_tb/runner/build.py": 2,
    "synth/layout/placer.py": 1,
    "vip/executor/executor.py": 1,
    "vip/models/folder.py": 1,
}


def test_an_error_names_the_path_that_was_given(tmp_path: Path) -> None:
    missing = tmp_path / "none" / "file"
    with pytest.raises(FileNotFoundError) as error:
        write_atomically(missing, b"x")
    assert error.value.filename == str(missing)
    with pytest.raises(IsADirectoryError) as refused:
        write_atomically(tmp_path, b"x")
    assert refused.value.filename == str(tmp_path)
    assert not list(tmp_path.parent.glob(f".{tmp_path.name}.*"))


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    write_atomically(path, b"after")
    assert path.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    path.chmod(0o640)
    write_atomically(path, b"after")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    link = tmp_path / "link"
    link.symlink_to("folder/target")
    for content in (b"made", b"replaced"):
        write_atomically(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder", "link", "target"]
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(loop, b"x")


def _read_all(pipe: Path, found: list[bytes]) -> None:
    found.append(pipe.read_bytes())


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="No such device"):
        write_atomically(pipe, b"nobody reads")
    found: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(pipe, found))
    reader.start()
    content = bytes(range(256)) * 1000
    while reader.is_alive():
        try:
            write_atomically(pipe, content)
            break
        except OSError:
            continue
    reader.join()
    assert found == [content]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_socket_is_refused_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        with pytest.raises(OSError, match="No such device"):
            write_atomically(path, b"x")
    assert stat.S_ISSOCK(path.stat().st_mode)


def test_a_device_is_written_to_and_stays(tmp_path: Path) -> None:
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.read_bytes()
    except OSError:
        pytest.skip("devices can't be made or used here")
    before = device.stat()
    write_atomically(device, b"x")
    copy_atomically(Path(__file__), device)
    after = device.stat()
    assert (after.st_ino, after.st_mode, after.st_rdev) == (
        before.st_ino,
        before.st_mode,
        before.st_rdev,
    )
    assert list(tmp_path.iterdir()) == [device]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_protected_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    path.chmod(0o400)
    with pytest.raises(PermissionError):
        write_atomically(path, b"after")
    assert path.read_bytes() == b"before"


def test_a_long_name_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_atomically(path, b"x")
    assert path.read_bytes() == b"x"


def test_reading_is_limited_to_regular_files_of_a_size(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_bytes(path, 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes") as refused:
        read_bytes(path, 4)
    assert refused.value.filename == str(path)
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "/dev/zero"):
        with pytest.raises(OSError, match="not a regular file"):
            read_bytes(tmp_path / name, 5)
    with pytest.raises(IsADirectoryError):
        read_bytes(tmp_path, 5)
    with pytest.raises(FileNotFoundError):
        read_bytes(tmp_path / "none", 5)


def test_what_a_killed_process_left_is_removed_by_the_next_write(tmp_path: Path) -> None:
    dead, young, other = (
        tmp_path / name for name in (".out.vip-dead", ".out.vip-young", ".out.mine")
    )
    for path in (dead, young, other):
        path.write_bytes(b"part")
    for path in (dead, other):
        os.utime(path, (0, 0))
    living: list[Path] = []

    class Slow:
        """Contents during whose writing another process writes the same file."""

        def read(self, count: int) -> bytes:
            if living:
                return b""
            living.extend(set(tmp_path.glob(".out.vip-*")) - {dead, young})
            os.utime(living[0], (0, 0))
            write_atomically(tmp_path / "out", b"other")
            assert living[0].exists()
            return b"mine"

    files._write(tmp_path / "out", lambda file: shutil.copyfileobj(Slow(), file))
    assert (tmp_path / "out").read_bytes() == b"mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".out.mine",
        ".out.vip-young",
        "out",
    ]


def test_a_full_disk_is_reported_with_the_file(small: Path, tmp_path: Path) -> None:
    source, path = tmp_path / "source", small / "file"
    source.write_bytes(bytes(1 << 21))
    writes: list[Callable[[], None]] = [
        lambda: write_file(path, source.read_bytes()),
        lambda: copy_file(source, path),
        lambda: write_atomically(path, source.read_bytes()),
        lambda: copy_atomically(source, path),
    ]
    for write in writes:
        with pytest.raises(OSError, match="No space left on device") as error:
            write()
        assert error.value.filename == str(path)
        path.unlink(missing_ok=True)


def _writes(node: ast.AST) -> bool:
    """Whether a call writes a file without its name in the errors."""
    match node:
        case ast.Call(func=ast.Attribute(attr="write_text" | "write_bytes" | "tofile")):
            return True
        case ast.Call(
            func=ast.Attribute(
                value=ast.Name(id="shutil"), attr="copy" | "copy2" | "copyfile" | "copytree"
            )
        ):
            return True
        case ast.Call(func=ast.Name(id="open") | ast.Attribute(attr="open")):
            modes = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            return any(mode in ("w", "wb", "a", "ab", "x", "xb") for mode in modes)
    return False


def test_every_error_of_writing_names_the_file() -> None:
    counted = {}
    for room in (*ROOMS, "bench"):
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if not re.search(r"open\(|\.write_|tofile|shutil\.copy", text):
                continue
            if count := sum(map(_writes, ast.walk(ast.parse(text)))):
                counted[path.relative_to(ROOT).as_posix()] = count
    del counted["support/files.py"]
    assert counted == _OPENS
