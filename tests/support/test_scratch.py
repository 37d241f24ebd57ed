"""Temporary files go away with their process, or with the next one."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from support import scratch
from support.scratch import owned_folder, remove_scratch, scratch_file, scratch_folder

ROOT = Path(__file__).resolve().parent.parent.parent
#: Makes files of both kinds, says where, and waits for a line.
HOLDER = """
import sys
import tempfile
from pathlib import Path
from isa.image import DramImage
from support import scratch
from support.scratch import owned_folder, scratch_folder
with (
    scratch_folder("work") as work,
    owned_folder(Path(sys.argv[1]), ".building-") as build,
    DramImage(1 << 33) as image,
):
    (work / "file").write_text("x")
    (build / "file").write_text("x")
    print(work / "file", build / "file", image.path, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def nothing_made(monkeypatch):
    """No temporary file of this process yet: one of a test that was cut off stays until Python
    finds it among its garbage."""
    monkeypatch.setattr(scratch, "_run", scratch._Run())


class Holder:
    """A process of HOLDER."""

    def __init__(self, temporary: Path, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(folder)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.files = [Path(name) for name in self.process.stdout.readline().split()]
        assert len(self.files) == 3

    def end(self, number: int = 0) -> None:
        assert self.process.stdin is not None
        if number:
            self.process.send_signal(number)
        with self.process:
            pass
        assert self.process.returncode == -number

    def there(self) -> list[bool]:
        return [path.exists() for path in self.files]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "temporary", tmp_path / "cache"
    for folder in made:
        folder.mkdir()
    return made


def test_files_are_removed_when_their_process_ends(folders):
    temporary, cache = folders
    holder = Holder(temporary, cache)
    assert holder.there() == [True] * 3
    holder.end()
    assert holder.there() == [False] * 3
    assert list(temporary.iterdir()) == []
    assert list(cache.iterdir()) == []


def test_the_next_process_removes_what_a_killed_one_left_and_nothing_else(folders):
    temporary, cache = folders
    killed, lives = Holder(temporary, cache), Holder(temporary, cache)
    killed.end(signal.SIGKILL)
    assert killed.there() == [True] * 3
    # However old they are.
    for path in lives.files:
        for folder in (path.parent, path.parent.parent):
            os.utime(folder, (0, 0))
    (cache / ".building-file").write_text("no folder of ours")
    (cache / "other").mkdir()
    following = Holder(temporary, cache)
    assert killed.there() == [False] * 3
    assert lives.there() == [True] * 3
    assert following.there() == [True] * 3
    lives.end()
    following.end()
    assert sorted(path.name for path in cache.iterdir()) == [".building-file", "other"]


def test_a_folder_that_is_just_being_made_is_left_alone(tmp_path):
    for name, age in ((".x-new", 0), (".x-old", 7200)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    with owned_folder(tmp_path, ".x-"):
        assert (tmp_path / ".x-new").is_dir()
        assert not (tmp_path / ".x-old").exists()


def test_names_with_wildcards_sweep_their_own_alone(tmp_path):
    (tmp_path / ".a-dead").mkdir()
    os.utime(tmp_path / ".a-dead", (0, 0))
    with owned_folder(tmp_path, ".[a]*-") as folder:
        assert folder.is_dir()
    assert [path.name for path in tmp_path.iterdir()] == [".a-dead"]


def test_scratch_of_this_process():
    with scratch_folder("some") as folder:
        path = scratch_file("dram", ".bin")
        (folder / "deep").mkdir()
        assert folder.name.startswith("some-")
        assert path.parent == folder.parent
        remove_scratch(path)
        assert folder.parent.is_dir()
    assert not folder.exists()
    # Of this process nothing is left, though it goes on.
    assert not folder.parent.exists()


def test_a_child_that_was_forked_off_leaves_its_parents_files(tmp_path):
    with scratch_folder("some") as folder, owned_folder(tmp_path, ".own-") as own:
        child = os.fork()
        if not child:
            # As the interpreter does at its end.
            try:
                with scratch_folder("other") as other:
                    code = int(other.parent == folder.parent)
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert folder.is_dir()
        assert own.is_dir()


def test_a_folder_of_somebody_else_is_not_used(tmp_path):
    (tmp_path / f"vip-{os.getuid()}").symlink_to(tmp_path)
    script = "from isa.image import DramImage; DramImage(4096)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "belongs to another user" in done.stderr.splitlines()[-1]


def test_a_folder_that_another_process_has_just_removed_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    removed = []
    lstat = Path.lstat

    def removing(path):
        if path.parent == tmp_path and not removed:
            path.rmdir()
            removed.append(path)
        return lstat(path)

    monkeypatch.setattr(Path, "lstat", removing)
    with scratch_folder("some") as folder:
        assert folder.is_dir()
    assert removed
