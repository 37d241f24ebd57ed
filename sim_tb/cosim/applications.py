"""The applications of :mod:`microkernels.suite` as launches of a simulated engine."""

from collections.abc import Sequence

from isa.image import DramImage
from isa.run import Launch
from microkernels.runtime.job import KernelJob
from microkernels.suite import Application, suite
from support.errors import VipError, unknown

#: A launch that takes more cycles is an error.
_MAX_CYCLES = 100_000_000


class ApplicationError(VipError):
    """An unknown application; the message names the known ones."""


def workloads(application: Application) -> tuple[tuple[Launch, bytes], ...]:
    """Its launches, each with the memory before it, from address 0 on."""
    return tuple(
        (
            Launch(program=job.program, parameters=job.parameters, max_cycles=_MAX_CYCLES),
            memory_of(job),
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
