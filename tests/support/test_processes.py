"""Tools end with the process that started them, and with all that they started."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from support.processes import end_tool, run_tool, tool, workers

ROOT = Path(__file__).resolve().parent.parent.parent
#: A tool whose own child writes its id and waits.
FAMILY = ["sh", "-c", "sh -c 'echo $$ > child; exec sleep 600' & echo $$ > own; wait"]


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(condition, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def family(folder: Path) -> list[int]:
    """Ids of the processes of FAMILY that runs in ``folder``."""

    def known() -> bool:
        files = [folder / name for name in ("own", "child")]
        return all(path.is_file() and path.read_text().endswith("\n") for path in files)

    wait_for(known)
    return [int((folder / name).read_text()) for name in ("own", "child")]


def test_exit_codes_signals_and_output_are_those_of_the_tool(tmp_path):
    done = run_tool(
        ["sh", "-c", "pwd; echo $VALUE; cat; echo no >&2; exit 7"],
        cwd=tmp_path,
        env={**os.environ, "VALUE": "5"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert (done.returncode, done.stderr) == (7, b"no\n")
    assert done.stdout.decode().split() == [str(tmp_path), "5"]
    assert run_tool(["true"]).returncode == 0
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGBUS, signal.SIGINT):
        assert run_tool(["sh", "-c", f"kill -{number} $$"]).returncode == -number


def test_a_missing_tool_is_named():
    with pytest.raises(FileNotFoundError) as caught:
        run_tool(["nosuchtool", "-x"])
    assert caught.value.filename == "nosuchtool"


def test_a_tool_that_takes_too_long_ends_with_its_children(tmp_path):
    with pytest.raises(subprocess.TimeoutExpired):
        run_tool(FAMILY, cwd=tmp_path, timeout=2)
    processes = family(tmp_path)
    wait_for(lambda: not any(map(alive, processes)))


def test_leaving_by_an_exception_ends_the_tool_with_its_children(tmp_path):
    processes = []

    def leave() -> None:
        with tool(FAMILY, cwd=tmp_path):
            processes.extend(family(tmp_path))
            assert all(map(alive, processes))
            raise RuntimeError("left")

    with pytest.raises(RuntimeError, match="left"):
        leave()
    wait_for(lambda: not any(map(alive, processes)))


def test_another_thread_can_end_a_tool(tmp_path):
    with tool(FAMILY, cwd=tmp_path) as process:
        family(tmp_path)
        threading.Thread(target=end_tool, args=(process,)).start()
        assert process.wait(30) == -signal.SIGKILL


def test_workers_end_their_tools_when_one_fails(tmp_path):
    futures = []

    def fail() -> None:
        with workers(2) as pool:
            futures.append(pool.submit(run_tool, FAMILY, cwd=tmp_path))
            futures.extend(pool.submit(run_tool, ["sleep", "600"]) for _ in range(3))
            family(tmp_path)
            raise RuntimeError("failed")

    started = time.monotonic()
    with pytest.raises(RuntimeError, match="failed"):
        fail()
    assert time.monotonic() - started < 60
    assert futures[0].result().returncode == -signal.SIGKILL
    assert all(future.cancelled() or future.result().returncode for future in futures)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_tools_end_with_a_process_that_is_killed(tmp_path, number):
    script = f"from support.processes import run_tool; run_tool({FAMILY!r}, cwd={str(tmp_path)!r})"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", script], env=environment) as parent:
        processes = family(tmp_path)
        assert all(map(alive, processes))
        parent.send_signal(number)
        assert parent.wait(30) == -number
    wait_for(lambda: not any(map(alive, processes)))
