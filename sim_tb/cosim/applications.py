"""The applications of :mod:`microkernels.suite` as workloads of a simulated engine."""

from collections.abc import Sequence
from functools import cached_property

from isa.image import DramImage
from microkernels import suite
from microkernels.runtime.job import KernelJob
from support.errors import VipError, unknown

from .engine import MemoryBehaviour
from .trim_check import Workload

#: Cycles from a request to its response, about as many as a vault's DRAM takes.
_LATENCY = 40


class ApplicationError(VipError):
    """An unknown application; the message names the known ones."""


class Application(suite.SuiteApplication):
    """An application, to whose launches an engine can be trimmed."""

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """Its launches, for :func:`sim_tb.cosim.trim_check.check_trimmed`."""
        return tuple(_workload(job) for job in self.jobs)


def _workload(job: KernelJob) -> Workload:
    with DramImage(job.end) as memory:
        job.prepare(memory)
        contents = memory.read(0, job.end)
    return Workload(
        program=job.program,
        contents=contents,
        parameters=job.parameters,
        memory=MemoryBehaviour(latency=_LATENCY),
    )


_APPLICATIONS = tuple(
    Application(name=item.name, summary=item.summary, preset=item.preset, make=item.make)
    for item in suite.suite()
)


def applications() -> tuple[Application, ...]:
    """All applications: those of SCRATCH, then those of the thesis."""
    return _APPLICATIONS


def choose(names: Sequence[str]) -> tuple[Application, ...]:
    """The applications called ``names`` in the suite's order; all of them if ``names`` is empty.

    Raises:
        ApplicationError: no application has one of the names.
    """
    applications = {application.name: application for application in _APPLICATIONS}
    for name in names:
        if name not in applications:
            raise ApplicationError(unknown("application", name, applications))
    return tuple(item for item in _APPLICATIONS if not names or item.name in names)
