"""Where the tasks of a sweep run: processes of this machine, or the workers of a Dask cluster."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any, Protocol

from isa.support.extras import need
from isa.support.processes import tool, workers
from isa.support.scratch import scratch_folder

from .kernels import SweepError
from .tasks import Task, code_version, run_task

__all__ = ["Executor", "cluster", "local"]

_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://[\w.:\[\]-]+:[0-9]{1,5}")
#: Tasks that a process does, one after the other.
_PART = 6
#: Seconds until a scheduler must have answered.
_PATIENCE = 10


class Executor(Protocol):
    """Runs tasks on several processors; results come as they are done."""

    def __call__(self, tasks: Sequence[Task]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The number of each task, and its result. A task that fails, other than by bad input, has
        the result ``lost``: one line."""


@contextmanager
def local(jobs: int | None = None) -> Iterator[Executor]:
    """Processes of this machine (:mod:`vip.sweeps.worker`), which end with this one.

    Parameters:
        jobs: how many; None: one a processor.
    """
    count = jobs or len(os.sched_getaffinity(0))
    with workers(count) as pool, scratch_folder("sweep") as folder:

        def execute(tasks: Sequence[Task]) -> Iterator[tuple[int, dict[str, Any]]]:
            done: Queue[tuple[int, dict[str, Any]]] = Queue()
            numbered = list(enumerate(tasks))
            parts = [numbered[at : at + _PART] for at in range(0, len(numbered), _PART)]
            for number, part in enumerate(parts):
                pool.submit(_work, part, folder / f"{number}.json", done)
            for _ in tasks:
                yield done.get()

        yield execute


def _work(
    tasks: list[tuple[int, Task]], file: Path, done: "Queue[tuple[int, dict[str, Any]]]"
) -> None:
    """Run tasks, one after the other, in a process. The one that ends the process is lost."""
    while tasks:
        try:
            file.write_text(json.dumps([task for _, task in tasks]))
            command = [sys.executable, "-m", "vip.sweeps.worker", str(file)]
            with tool(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    done.put((tasks.pop(0)[0], json.loads(line)))
                complaint = process.communicate()[1].decode(errors="replace").strip()
            reason = complaint.splitlines()[-1] if complaint else "its process was killed"
        except OSError as error:
            reason = str(error)
        if tasks:
            done.put((tasks.pop(0)[0], {"lost": reason}))


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """The workers of a Dask scheduler. A task whose worker ends is run by another one.

    Parameters:
        address: of the scheduler, such as ``tcp://10.0.0.1:8786``.

    Raises:
        SweepError: no scheduler answers there, it has no worker, or a worker has another version of
            VIP; the message names it.
        MissingExtraError: Dask is not installed.
    """
    need("distributed", "sweeps on a cluster")
    if not _ADDRESS.fullmatch(address):
        raise SweepError(f"{address!r} is no address of a scheduler, such as tcp://10.0.0.1:8786")
    from distributed import Client
    from distributed import as_completed as finished

    try:
        client: Any = Client(  # type: ignore[no-untyped-call]
            address, timeout=_PATIENCE, set_as_default=False
        )
    except (OSError, ValueError) as error:
        reason = f"{error}".splitlines()[0] if f"{error}" else type(error).__name__
        raise SweepError(f"no Dask scheduler answers at {address}: {reason}") from None
    try:
        _check_workers(client, address)

        def execute(tasks: Sequence[Task]) -> Iterator[tuple[int, dict[str, Any]]]:
            futures = {
                client.submit(run_task, dict(task), pure=False): number
                for number, task in enumerate(tasks)
            }
            ended: Any = finished(list(futures), loop=client.loop)  # type: ignore[no-untyped-call]
            for future in ended:
                try:
                    yield futures[future], future.result()
                except Exception as error:
                    lost = f"{type(error).__name__}: {error}".splitlines()[0]
                    yield futures[future], {"lost": lost}

        yield execute
    finally:
        client.close()


def _check_workers(client: Any, address: str) -> None:
    own = code_version()
    try:
        found: dict[str, str] = client.run(code_version)
    except ModuleNotFoundError as error:
        raise SweepError(f"workers of {address} have no VIP: {error}") from None
    if not found:
        raise SweepError(f"the scheduler at {address} has no worker")
    for worker, threads in sorted(client.nthreads().items()):
        if threads != 1:
            raise SweepError(
                f"worker {worker} runs {threads} tasks at a time: start it with --nthreads 1, and "
                "more of them with --nworkers"
            )
    for worker, version in sorted(found.items()):
        if version != own:
            raise SweepError(f"worker {worker} has VIP {version}, this machine has {own}")
