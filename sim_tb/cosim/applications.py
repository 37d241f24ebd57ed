"""The applications of :mod:`microkernels.suite` as workloads of a simulated engine."""

from collections.abc import Sequence

from isa.image import DramImage
from microkernels.runtime.job import KernelJob
from microkernels.suite import Application, suite
from support.errors import VipError, unknown

from .engine import MemoryBehaviour
from .trim_check import Workload

#: Cycles from a request to its response, about as many as a vault's DRAM takes.
_LATENCY = 40


class ApplicationError(VipError):
    """An unknown application; the message names the known ones."""


def workloads(application: Application) -> tuple[Workload, ...]:
    """Its launches, for :func:`sim_tb.cosim.trim_check.check_trimmed`."""
    return tuple(
        Workload(
            program=job.program,
            contents=memory_of(job),
            parameters=job.parameters,
            memory=MemoryBehaviour(latency=_LATENCY),
        )
        for job in application.jobs
    )


def memory_of(job: KernelJob) -> bytes:
    """The memory that a job starts with, from address 0 on."""
    with DramImage(job.end) as memory:
        job.prepare(memory)
        return memory.read(0, job.end)


def choose(names: Sequence[str]) -> tuple[Application, ...]:
    """The applications called ``names`` in the suite's order; all of them if ``names`` is empty.

    Raises:
        ApplicationError: no application has one of the names.
    """
    for name in names:
        if name not in suite():
            raise ApplicationError(unknown("application", name, suite()))
    return tuple(item for item in suite().values() if not names or item.name in names)
