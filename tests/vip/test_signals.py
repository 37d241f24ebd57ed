"""Commands that a signal ends leave no process and no file, and report the reason."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sim_tb.dut.engine import engine_design
from sim_tb.runner.build import build
from soc.generate.presets import preset
from support.cache import build_folder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

SECONDS = 300


def wait_for(what: Callable[[], object], seconds: float = SECONDS) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def related(mark: str) -> list[str]:
    """Command lines of the processes whose environment holds ``mark``."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"VIP_TEST_MARK={mark}\0".encode() in (folder / "environ").read_bytes() + b"\0":
                words = (folder / "cmdline").read_bytes().split(b"\0")
                found.append(b" ".join(words).decode(errors="replace"))
        except OSError:
            continue
    return [line for line in found if line]


def _as_from_a_terminal() -> None:
    """Reset these signals: tests that run in the background inherit them as ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Command:
    """``vip`` with arguments, as a process that works in ``folder``."""

    def __init__(self, folder: Path, cache: Path, *arguments: str) -> None:
        self.cache = cache
        self.temporary = folder / "tmp"
        self.out = folder / "out"
        for made in (self.temporary, self.out, cache):
            made.mkdir(exist_ok=True, parents=True)
        self.mark = str(folder)
        environment = {
            **os.environ,
            "TMPDIR": str(self.temporary),
            "VIP_BUILD_DIR": str(cache),
            "VIP_TEST_MARK": self.mark,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from vip.cli.app import main; main()", *arguments],
            cwd=self.out,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_as_from_a_terminal,
        )

    def running(self, word: str) -> bool:
        assert self.process.poll() is None
        return any(word in line for line in related(self.mark))

    def end(self, number: int) -> tuple[int, list[str]]:
        """Exit code, and lines on standard error."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=60)
        wait_for(lambda: not related(self.mark), 30)
        return self.process.returncode, said.splitlines()

    def temporary_files(self) -> list[Path]:
        return list(self.temporary.rglob("*"))

    def memory_images(self) -> list[Path]:
        return [path for path in self.temporary_files() if path.suffix == ".bin"]

    def half_built(self) -> list[Path]:
        return list((self.cache / "simulators").glob(".building-*"))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a shorter name than pytest's: a socket's path has room for 100 characters."""
    with TemporaryDirectory() as name:
        yield Path(name)


def line_about(name: str, cache: Path) -> str:
    return (
        f"vip: interrupted by {name}; no partial output was written; finished work is "
        f"cached in {cache}"
    )


LONG = ("cosim", "bp", "--preset", "pe", "--iterations", "1000", "--json", "x.json")


@pytest.fixture(scope="module")
def long_run() -> Path:
    build(engine_design(preset("pe")))
    return build_folder()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_simulation_that_is_interrupted_leaves_nothing(folder, long_run, name):
    command = Command(folder, long_run, *LONG)
    wait_for(lambda: command.running("/vip_pe_top"))
    number = signal.Signals[name]
    code, said = command.end(number)
    assert (code, said) == (128 + number, [line_about(name, long_run)])
    assert command.temporary_files() == []
    assert list(command.out.iterdir()) == []


def test_what_a_killed_simulation_left_is_swept_by_the_next(folder, long_run):
    command = Command(folder, long_run, *LONG)
    wait_for(lambda: command.running("/vip_pe_top"))
    wait_for(command.memory_images)
    assert command.end(signal.SIGKILL) == (-signal.SIGKILL, [])
    (left,) = command.memory_images()
    following = Command(folder, long_run, *LONG)
    wait_for(lambda: following.running("/vip_pe_top"))
    wait_for(lambda: following.memory_images() not in ([], [left]))
    assert left not in following.memory_images()
    following.end(signal.SIGTERM)
    assert command.temporary_files() == []


def test_a_compilation_that_is_interrupted_leaves_nothing(folder):
    cache = folder / "cache"
    arguments = ("cosim", "bp", "--width", "8", "--height", "6", "--json", "x.json")
    killed = Command(folder / "killed", cache, *arguments)
    wait_for(lambda: killed.running("cc1plus"))
    assert killed.end(signal.SIGKILL)[0] == -signal.SIGKILL
    assert len(killed.half_built()) == 1
    assert killed.temporary_files()
    command = Command(folder / "killed", cache, *arguments)
    wait_for(lambda: command.running("cc1plus"))
    # The first one's is gone, the second one's is there.
    assert len(command.half_built()) == 1
    code, said = command.end(signal.SIGTERM)
    assert code == 128 + signal.SIGTERM
    assert len(said) == 2
    assert said[0].startswith("vip: compiling a simulator, once: about ")
    assert said[1] == line_about("SIGTERM", cache)
    assert command.half_built() == []
    assert command.temporary_files() == []
    assert list(command.out.iterdir()) == []
