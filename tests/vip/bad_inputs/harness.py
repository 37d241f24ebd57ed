"""Runs bad inputs, in this process or one of their own, and says what is wrong with the answer."""

import gc
import io
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType
from unittest.mock import patch

import typer.main

from vip.cli.app import main
from vip.cli.lazy import LazyGroup

from .cases import Case
from .items import listing, make

#: Limits of processor time and memory for a rejection.
MOST_SECONDS = 10.0
MOST_BYTES = 1 << 30
#: A call that has used less than :data:`MOST_SECONDS` of the processor, but more in this time, of
#: the clock on the wall, than :data:`_ALIVE_SECONDS`, goes on: machines may be busy with other
#: things.
_GIVEN_UP_SECONDS = 60
_ALIVE_SECONDS = 0.005
_CARETS = re.compile(
    r"vip: ([^\n]+:\d+:\d+: [^\n]*\n[^\n]*\n[ \t]*\^\n)+(and [\d,]+ more [^\n]*\n)?"
)
_LINE = re.compile(r"vip: [^\n]+\n")
_MOST_CHARACTERS = 3_000
#: Files of a process in the folder for temporary files: while it lives, and after.
_OWN = re.compile(r"tmp/vip-\d+(/run-[^/]+(/lock)?)?")
_SHARED = re.compile(r"tmp/vip-\d+")
#: Typer makes a command anew for each call, which takes longer than most refusals.
_command, _load = cache(typer.main.get_command), cache(LazyGroup.load)


class _Hang(BaseException):
    """The call did not end; raised by the alarm."""


@dataclass
class Answer:
    """Outcome of a call.

    Attributes:
        code: exit code; None: it did not end. err: standard error.
        seconds: processor time. bytes: most memory at a time, 0 where that is not known.
        changed: names of what was made, removed or changed in its folder.
        left: names of temporary files and builds that it left.
    """

    code: int | None
    err: str
    seconds: float
    bytes: int
    changed: list[str]
    left: list[str]


def violations(answer: Answer) -> list[str]:
    """Errors in the answer to a bad input."""
    found = []
    if answer.code is None:
        found.append(f"does not end: {answer.err.strip()[-300:]}")
    elif answer.code != 2:
        found.append(f"exit code {answer.code}")
    if "Traceback (most recent" in answer.err:
        found.append(f"traceback: {answer.err.strip()[-600:]}")
    elif answer.code is not None and not _is_refusal(answer.err):
        found.append(f"no single line: {answer.err[:600]!r}")
    if answer.seconds > MOST_SECONDS:
        found.append(f"takes {answer.seconds:.1f} s")
    if answer.bytes > MOST_BYTES:
        found.append(f"takes {answer.bytes / 1e6:,.0f} MB")
    if answer.changed:
        found.append(f"changes {', '.join(map(repr, answer.changed))}")
    if answer.left:
        found.append(f"leaves {', '.join(answer.left)}")
    return found


def _is_refusal(err: str) -> bool:
    """Whether ``err`` is one line, or the assembler's mistakes with a caret below each."""
    if len(err) > _MOST_CHARACTERS or not re.sub(r"[\n\t]", "", err).isprintable():
        return False
    return bool(_LINE.fullmatch(err) or _CARETS.fullmatch(err))


class _Alarm:
    """Ends a call that does not end by itself."""

    def __init__(self) -> None:
        self._first = self._last = time.process_time()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.process_time()
        if now - self._first > MOST_SECONDS or now - self._last < _ALIVE_SECONDS:
            raise _Hang("".join(traceback.format_stack(frame, limit=8)))
        self._last = now
        signal.setitimer(signal.ITIMER_REAL, _GIVEN_UP_SECONDS)


class Harness:
    """Folders for the calls; to be used in a ``with`` statement."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="vip-bad-inputs-"))
        self._temporary = self._root / "tmp"
        self._build = self._root / "build"
        self._number = 0

    def __enter__(self) -> "Harness":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _remove(self._root)

    @contextmanager
    def _folder(self, case: Case) -> Iterator[Path]:
        """A new folder with what ``case`` needs, as the working directory."""
        self._number += 1
        folder = self._root / str(self._number)
        folder.mkdir()
        self._temporary.mkdir(exist_ok=True)
        before = Path.cwd()
        os.chdir(folder)
        try:
            # Links after what they link to.
            for item in sorted(case.items, key=lambda item: "link" in item.kind):
                make(item, folder)
            yield folder
        finally:
            os.chdir(before)
            _remove(folder)
            _remove(self._temporary)
            _remove(self._build)

    def _left(self, own: re.Pattern[str]) -> list[str]:
        """Entries of the folder for temporary files except ``own``, and builds that were begun."""
        kept = [str(path.relative_to(self._root)) for path in self._temporary.rglob("*")]
        kept = [name for name in kept if not own.fullmatch(name)]
        return kept + [str(path.relative_to(self._root)) for path in self._build.rglob("*.*")]

    def _environment(self) -> dict[str, str]:
        return {
            "COLUMNS": "120",
            "TMPDIR": str(self._temporary),
            "VIP_BUILD_DIR": str(self._build),
            "OPENBLAS_NUM_THREADS": "1",
        }

    def run(self, case: Case) -> Answer:
        """Call ``case`` in this process."""
        with self._folder(case) as folder, _settings({**self._environment(), **case.environment}):
            before = listing(folder)
            _reset_peak()
            started = time.process_time()
            code, err = _call(case.arguments)
            seconds = time.process_time() - started
            return Answer(
                code, err, seconds, _peak(), _changes(before, listing(folder)), self._left(_OWN)
            )

    def run_apart(self, case: Case) -> Answer:
        """Call ``case`` in a process of its own, with limits on its memory."""
        script = "from vip.cli.app import main; main()"
        with self._folder(case) as folder:
            before = listing(folder)
            root = str(Path(__file__).parents[3])
            process = subprocess.Popen(
                [sys.executable, "-c", script, *map(os.fsencode, case.arguments)],
                env={
                    **os.environ,
                    **self._environment(),
                    **case.environment,
                    "PYTHONPATH": root,
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                preexec_fn=_limit,
            )
            try:
                err = process.communicate(timeout=_GIVEN_UP_SECONDS)[1]
                code: int | None = process.returncode
            except subprocess.TimeoutExpired:
                process.kill()
                err, code = process.communicate()[1], None
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            text = err.decode(errors="replace")
            peak = used.ru_maxrss * 1024
            return Answer(
                code, text, 0, peak, _changes(before, listing(folder)), self._left(_SHARED)
            )


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    seconds = int(MOST_SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def _call(arguments: list[str]) -> tuple[int | None, str]:
    """Exit code and standard error of a call in this process."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    streams = sys.stdout, sys.stderr, sys.argv
    alarm = signal.signal(signal.SIGALRM, _Alarm())
    sys.stdout, sys.stderr, sys.argv = out, err, ["vip", *arguments]
    code: int | None = 0
    signal.setitimer(signal.ITIMER_REAL, _GIVEN_UP_SECONDS)
    try:
        with patch("typer.main.get_command", _command), patch.object(LazyGroup, "load", _load):
            main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except _Hang as hang:
        code = None
        err.write(str(hang))
    except BaseException:
        code = 1
        err.write(traceback.format_exc())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        sys.stdout, sys.stderr, sys.argv = streams
    err.flush()
    return code, err.buffer.getvalue().decode(errors="replace")  # type: ignore[attr-defined]


@contextmanager
def _settings(environment: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in environment}
    temporary = tempfile.tempdir
    os.environ.update(environment)
    tempfile.tempdir = environment["TMPDIR"]
    try:
        yield
    finally:
        tempfile.tempdir = temporary
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _changes(before: dict[str, object], after: dict[str, object]) -> list[str]:
    return sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )


def _reset_peak() -> None:
    """Let the kernel count the most memory of this process anew, where it can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    """Most memory of this process since :func:`_reset_peak`, in bytes."""
    with suppress(OSError):
        if found := re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text()):
            return int(found[1]) * 1024
    return 0


def _remove(path: Path) -> None:
    if not path.exists():
        return
    for folder in (path, *path.rglob("*")):
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(0o700)
    shutil.rmtree(path)
    gc.collect(0)
