"""The cocotb test that runs jobs in a simulator of any design.

An environment variable has the address of the session, which sends one job after another. Python
wakes once per block of cycles; the C++ models do the work of each cycle.
"""

import ctypes
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Client
from typing import Any, Protocol, TypeVar

import cocotb
from cocotb.triggers import FallingEdge, First, RisingEdge, Timer

from .models import PERIOD_PS, Library

__all__ = ["ADDRESS_VARIABLE", "Job", "perform", "serve"]

#: Names the address at which the session listens.
ADDRESS_VARIABLE = "VIP_SESSION_ADDRESS"
#: Cycles between two checks whether to report progress.
_BLOCK_CYCLES = 10_000
#: Seconds between two reports of progress.
_REPORT_SECONDS = 0.1

_R = TypeVar("_R", covariant=True)


class Job(Protocol[_R]):
    """Work of a session: plain data, with functions called in the simulator's process.

    If the attribute ``outer`` of a job is true, its coroutine ``drive(dut, library)`` replaces the
    models' run and returns what :meth:`result` would.
    """

    def start(self, library: Library) -> None:
        """Hand the run to the models; it ends when the top module's ``idle`` is 1 again."""

    def progress(self, library: Library) -> int:
        """Cycles of the run so far."""

    def result(self, library: Library, seconds: float) -> _R:
        """Result of the run, which took ``seconds``."""


@cocotb.test()
async def serve(dut: Any) -> None:
    """Run jobs until the session closes the connection."""
    library = Library(ctypes.CDLL(None))
    await Timer(PERIOD_PS, "ps")
    with Client(os.environ[ADDRESS_VARIABLE]) as session:
        session.send(os.getpid())
        while True:
            try:
                job = session.recv()
            except EOFError:
                return
            result = await perform(
                dut, library, job, lambda cycles: session.send(("cycles", cycles))
            )
            session.send(("result", result))


async def perform(
    dut: Any, library: Library, job: Any, progress: Callable[[int], None] | None = None
) -> Any:
    """Run one :class:`Job`; ``progress`` is called periodically with its cycles."""
    started = reported = time.perf_counter()
    job.start(library)
    if getattr(job, "outer", False):
        return await job.drive(dut, library)
    await FallingEdge(dut.idle)
    while not dut.idle.value:
        await First(RisingEdge(dut.idle), Timer(_BLOCK_CYCLES * PERIOD_PS, "ps"))
        checked = time.perf_counter()
        if progress and checked - reported > _REPORT_SECONDS:
            reported = checked
            progress(job.progress(library))
    return job.result(library, time.perf_counter() - started)
