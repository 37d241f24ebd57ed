"""Where tasks run: local processes, or the workers of a Dask cluster."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from queue import Queue
from typing import Any, Protocol

from support.cache import ResultCache
from support.extras import need
from support.files import write_file
from support.processes import tool, workers
from support.scratch import scratch_folder

from .work import ExecutorError, Task, do_checked, other_version, own_version

_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://[\w.:\[\]-]+:[0-9]{1,5}")
#: Most tasks per process, one after the other.
_PART = 6
#: Fewest parts per process, if there are enough tasks: few tasks are long ones.
_PARTS = 8
#: Seconds within which a scheduler must answer.
_PATIENCE = 10


class Executor(Protocol):
    """Runs tasks on several processors; results arrive as tasks finish."""

    def __call__(self, tasks: Sequence[Task]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The number of each task, and its result. A task that fails, except for invalid input, has
        the result ``lost``: one line."""


def run_missing(
    executor: AbstractContextManager[Executor],
    tasks: Sequence[Task],
    keys: Sequence[str],
    cache: ResultCache,
) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Key and result of each task, and whether it ran: first the cached ones, then the others as
    they finish. They are cached unless they have an ``error`` or are ``lost``; equal keys count
    once.

    Parameters:
        executor: entered if a task has to run. keys: of the tasks.
    """
    cached = {key: cache.known(key) for key in dict.fromkeys(keys)}
    yield from ((key, result, False) for key, result in cached.items() if result is not None)
    missing = {key: task for key, task in zip(keys, tasks, strict=True) if cached[key] is None}
    if not missing:
        return
    order = list(missing)
    with executor as execute:
        for number, result in execute(list(missing.values())):
            if not result.keys() & {"lost", "error"}:
                cache.keep(order[number], result)
            yield order[number], result, True


@contextmanager
def local(work: str, jobs: int | None = None) -> Iterator[Executor]:
    """Processes of this machine (:mod:`vip.executor.work`), which end with this one.

    Parameters:
        work: the function applied to tasks; see :mod:`vip.executor.work`.
        jobs: number of processes; None: one per processor.
    """
    count = jobs or len(os.sched_getaffinity(0))
    with workers(count) as pool, scratch_folder("tasks") as folder:

        def execute(tasks: Sequence[Task]) -> Iterator[tuple[int, dict[str, Any]]]:
            done: Queue[tuple[int, dict[str, Any]]] = Queue()
            numbered = list(enumerate(tasks))
            size = max(1, min(_PART, len(tasks) // (_PARTS * count)))
            parts = [numbered[at : at + size] for at in range(0, len(numbered), size)]
            for number, part in enumerate(parts):
                pool.submit(_work, work, part, folder / f"{number}.json", done)
            for _ in tasks:
                yield done.get()

        yield execute


def _work(
    work: str, tasks: list[tuple[int, Task]], file: Path, done: "Queue[tuple[int, dict[str, Any]]]"
) -> None:
    """Run tasks one after the other in a process. A task that kills the process is lost."""
    while tasks:
        try:
            write_file(file, json.dumps({"work": work, "tasks": [task for _, task in tasks]}))
            command = [sys.executable, "-m", "vip.executor.work", str(file)]
            said = file.with_suffix(".log")
            with (
                said.open("wb") as log,
                tool(command, stdout=subprocess.PIPE, stderr=log) as process,
            ):
                assert process.stdout is not None
                for line in process.stdout:
                    done.put((tasks.pop(0)[0], json.loads(line)))
            complaint = said.read_text(errors="replace").strip()
            reason = complaint.splitlines()[-1] if complaint else "its process was killed"
        except OSError as error:
            reason = str(error)
        if tasks:
            done.put((tasks.pop(0)[0], {"lost": reason}))


@contextmanager
def cluster(work: str, address: str) -> Iterator[Executor]:
    """The workers of a Dask scheduler. If a worker ends, another one runs its task.

    Parameters:
        work: as for :func:`local`.
        address: of the scheduler, such as ``tcp://10.0.0.1:8786``.

    Raises:
        ExecutorError: no scheduler answers, it has no worker, or (possibly while tasks run) a
            worker has another version of VIP; the message names it.
        MissingExtraError: Dask is not installed.
    """
    need("distributed", "tasks on a cluster")
    if not _ADDRESS.fullmatch(address):
        raise ExecutorError(
            f"{address!r} is not the address of a scheduler, such as tcp://10.0.0.1:8786"
        )
    from distributed import Client
    from distributed import as_completed as finished

    try:
        client: Any = Client(  # type: ignore[no-untyped-call]
            address, timeout=_PATIENCE, set_as_default=False
        )
    except (OSError, ValueError) as error:
        reason = f"{error}".splitlines()[0] if f"{error}" else type(error).__name__
        raise ExecutorError(f"no Dask scheduler answers at {address}: {reason}") from None
    try:
        expected = own_version()
        _check_workers(client, address, expected)

        def execute(tasks: Sequence[Task]) -> Iterator[tuple[int, dict[str, Any]]]:
            futures = {
                client.submit(do_checked, work, dict(task), expected, pure=False): number
                for number, task in enumerate(tasks)
            }
            ended: Any = finished(list(futures), loop=client.loop)  # type: ignore[no-untyped-call]
            for future in ended:
                try:
                    yield futures[future], future.result()
                except ExecutorError:
                    raise
                except Exception as error:
                    lost = f"{type(error).__name__}: {error}".splitlines()[0]
                    yield futures[future], {"lost": lost}

        yield execute
    finally:
        client.close()


def opened(
    work: str, *, scheduler: str | None, jobs: int | None
) -> AbstractContextManager[Executor]:
    """:func:`cluster` if ``scheduler`` is an address, else :func:`local` with ``jobs``."""
    return local(work, jobs) if scheduler is None else cluster(work, scheduler)


def check_scheduler(work: str, scheduler: str | None) -> None:
    """Raise what :func:`cluster` raises, before anything is done for tasks that go there; nothing
    if ``scheduler`` is None."""
    if scheduler is not None:
        with cluster(work, scheduler):
            pass


def _check_workers(client: Any, address: str, expected: str) -> None:
    versions: dict[str, Any] = client.run(own_version, on_error="return")
    if not versions:
        raise ExecutorError(f"the scheduler at {address} has no worker")
    for worker, version in sorted(versions.items()):
        if isinstance(version, Exception):
            # Without VIP, or with a version too old to have this function.
            reason = f"{version}".splitlines()[0]
            raise ExecutorError(f"worker {worker} has no VIP {expected}: {reason}")
        if version != expected:
            raise ExecutorError(other_version(worker, version, expected))
    for worker, threads in sorted(client.nthreads().items()):
        if threads != 1:
            raise ExecutorError(
                f"worker {worker} runs {threads} tasks at a time: start it with --nthreads 1, and "
                "more of them with --nworkers"
            )
