"""The cocotb test that serves runs within the simulator of one engine.

It is told where the session listens by the environment and then takes one job after the other from
it. Python wakes once in a block of cycles; the models in C++ do the work of each cycle.
"""

import ctypes
import os
import time
from multiprocessing.connection import Client, Connection
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, First, RisingEdge, Timer

from sim_tb.runner.readout import EngineMemories

from .models import HostJob, HostModel, HostResult, MemoryModel

__all__ = [
    "ADDRESS_VARIABLE",
    "BLOCK_CYCLES",
    "PERIOD_PS",
    "REPORT_SECONDS",
    "receive",
    "serve",
]

#: Names the address at which the session listens.
ADDRESS_VARIABLE = "VIP_SESSION_ADDRESS"

#: Clock period.
PERIOD_PS = 800
#: Cycles after which Python looks whether to report progress.
BLOCK_CYCLES = 10_000
_PORT = 0
#: Seconds between two reports of progress.
REPORT_SECONDS = 0.1


@cocotb.test()
async def serve(dut: Any) -> None:
    """Run jobs until the session closes the connection."""
    library = ctypes.CDLL(None)
    memory, host = MemoryModel(library), HostModel(library)
    memories = EngineMemories(host)
    await Timer(PERIOD_PS, "ps")
    with Client(os.environ[ADDRESS_VARIABLE]) as session:
        session.send_bytes(b'{"process": %d}' % os.getpid())
        while text := receive(session):
            job = HostJob.from_json(text)
            memory.open(job.memory)
            memory.configure(_PORT, job.behaviour)
            if job.scratchpad is not None:
                memories.scratchpad = bytes.fromhex(job.scratchpad)
            if job.sizes is not None:
                memories.limit(job.sizes, job.limits)
            started = time.perf_counter()
            host.start(job)
            await FallingEdge(dut.idle)
            reported = started
            while not dut.idle.value:
                await First(RisingEdge(dut.idle), Timer(BLOCK_CYCLES * PERIOD_PS, "ps"))
                now = time.perf_counter()
                if now - reported > REPORT_SECONDS:
                    reported = now
                    session.send_bytes(b'{"cycles": %d}' % host.cycles())
            result = HostResult(
                **host.result(),
                violation=memory.violation(_PORT),
                wall_seconds=time.perf_counter() - started,
                registers=memories.registers,
                scratchpad=memories.scratchpad.hex(),
                in_flight=memories.in_flight,
            )
            session.send_bytes(result.to_json())


def receive(session: Connection) -> bytes:
    """The next job, or nothing when the session has closed the connection."""
    try:
        return session.recv_bytes()
    except EOFError:
        return b""
