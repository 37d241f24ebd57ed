"""Tasks on processes of this machine and on a Dask cluster, and workers that are refused."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vip.executor.executor import _check_workers, cluster, local
from vip.executor.work import ExecutorError, do, do_checked, own_version

WORK = "tests.vip.executor.test_executor:double"
OWN = own_version()
#: A worker whose package has another version.
OTHER = """
import importlib.metadata, sys
real = importlib.metadata.version
importlib.metadata.version = lambda name: "0.0.1" if name == "vip-inference" else real(name)
from distributed.cli.dask_worker import main
main(sys.argv[1:])
"""


def double(task: Any) -> dict[str, Any]:
    """The work of these tests."""
    return {"value": 2 * task["value"]}


def test_a_task_that_ends_its_process_is_lost_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    with local(WORK, 1) as executor:
        found = dict(executor([{"value": 3}, {}, {"value": 5}]))
    assert (
        (found[0], found[2]) == ({"value": 6}, {"value": 10}) == (do(WORK, {"value": 3}), found[2])
    )
    assert "KeyError" in found[1]["lost"]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nowhere", "'nowhere' is not the address of a scheduler, such as tcp://10.0.0.1:8786"),
        ("", "'' is not the address of a scheduler"),
        ("tcp://127.0.0.1:1", "no Dask scheduler answers at tcp://127.0.0.1:1"),
    ],
)
def test_a_cluster_that_is_not_there(
    address: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vip.executor.executor._PATIENCE", 0.5)
    with pytest.raises(ExecutorError, match=message), cluster(WORK, address):
        pass


class Client:
    """Of a cluster of two workers."""

    def __init__(self, versions: dict[str, Any], threads: int) -> None:
        self.versions, self.threads = versions, threads

    def run(self, *_: object, **__: object) -> dict[str, Any]:
        return self.versions

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.versions, self.threads)


@pytest.mark.parametrize(
    ("versions", "threads", "message"),
    [
        ({}, 1, "the scheduler at tcp://s has no worker"),
        (
            {"tcp://a": OWN, "tcp://b": "0.1"},
            1,
            f"worker tcp://b has VIP 0.1, this machine has {OWN}",
        ),
        (
            {"tcp://a": ModuleNotFoundError("No module named 'vip'")},
            1,
            f"worker tcp://a has no VIP {OWN}: No module named 'vip'",
        ),
        ({"tcp://a": OWN}, 2, "worker tcp://a runs 2 tasks at a time: start it with --nthreads 1"),
    ],
)
def test_workers_that_can_not_be_used(versions: Any, threads: int, message: str) -> None:
    with pytest.raises(ExecutorError) as refused:
        _check_workers(Client(versions, threads), "tcp://s", OWN)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_a_worker_of_another_version_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import LocalCluster

    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as machines:  # type: ignore[no-untyped-call]
        address = machines.scheduler_address
        options = [address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        start = [sys.executable, "-c", OTHER, *options, "--name", "old"]

        def refused() -> str:
            with pytest.raises(ExecutorError) as caught, cluster(WORK, address) as executor:
                list(executor([{"value": number} for number in range(200)]))
            return str(caught.value)

        with cluster(WORK, address) as executor:
            assert dict(executor([{"value": 4}])) == {0: {"value": 8}}
            # One that comes later is refused at its first task.
            with subprocess.Popen(start, stderr=subprocess.DEVNULL) as worker:
                try:
                    client = machines.get_client()
                    client.wait_for_workers(2, timeout=60)
                    with pytest.raises(ExecutorError, match=r"worker tcp://\S+ has VIP 0\.0\.1 "):
                        list(executor([{"value": number} for number in range(200)]))
                    assert "has VIP 0.0.1 " in refused()
                finally:
                    worker.kill()


def test_a_worker_that_came_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distributed.get_worker", lambda: type("W", (), {"address": "tcp://c"}))
    assert do_checked(WORK, {"value": 1}, OWN) == {"value": 2}
    with pytest.raises(ExecutorError, match=f"worker tcp://c has VIP {OWN}, this machine has 9.9"):
        do_checked(WORK, {"value": 1}, "9.9")
