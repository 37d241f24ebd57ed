"""How a process on any machine handles a task, and the process's version of VIP.

Work is a function from plain data to plain data, named ``module:function`` so that every process
can import it. ``python -m vip.executor.work FILE`` is a process of
:func:`vip.executor.executor.local`.
"""

import json
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sim_tb.runner.cache import source_digest
from support.errors import VipError
from vip_rooms import ROOMS

Task = Mapping[str, Any]


class ExecutorError(VipError):
    """A cluster that can't work; one line."""


@cache
def own_version() -> str:
    """Identifies the VIP of this process; the same on machines with the same source."""
    return f"{version('vip-inference')} {source_digest(ROOMS)}"


def do(work: str, task: Task) -> dict[str, Any]:
    """The result of ``task``, or ``error``: why VIP refuses it, in one line."""
    module, _, function = work.partition(":")
    try:
        result: dict[str, Any] = getattr(import_module(module), function)(task)
    except VipError as error:
        return {"error": str(error).splitlines()[0]}
    return result


def do_checked(work: str, task: Task, expected: str) -> dict[str, Any]:
    """:func:`do` on a worker of a cluster, which may have joined after the check of the others.

    Parameters:
        expected: version that the worker must have.

    Raises:
        ExecutorError: it has another one; the message names the worker.
    """
    if own_version() != expected:
        from distributed import get_worker

        raise ExecutorError(other_version(get_worker().address, own_version(), expected))
    return do(work, task)


def other_version(worker: str, installed: str, expected: str) -> str:
    """Message about a worker."""
    return f"worker {worker} has VIP {installed}, this machine has {expected}"


def main(file: Path) -> None:
    """Do the ``tasks`` of the ``work`` in ``file``, a JSON object; print each result as a line."""
    content = json.loads(file.read_text())
    for task in content["tasks"]:
        print(json.dumps(do(content["work"], task)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
