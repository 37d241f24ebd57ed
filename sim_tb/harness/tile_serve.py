"""The cocotb test that serves runs within the simulator of a vault with its engines.

As :mod:`sim_tb.harness.engine_serve` for one engine.
"""

import ctypes
import os
import time
from multiprocessing.connection import Client
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, First, RisingEdge, Timer

from memory.model.device_model import DeviceModel

from .engine_serve import ADDRESS_VARIABLE, BLOCK_CYCLES, PERIOD_PS, REPORT_SECONDS, receive
from .models import HostJob, HostModel, MemoryBehaviour
from .tile_models import EngineResult, TileHostModel, TileJob, TileResult

__all__ = ["serve"]

_DEVICE = 0


@cocotb.test()
async def serve(dut: Any) -> None:
    """Run jobs until the session closes the connection."""
    library = ctypes.CDLL(None)
    device, host, tile = DeviceModel(library), HostModel(library), TileHostModel(library)
    await Timer(PERIOD_PS, "ps")
    with Client(os.environ[ADDRESS_VARIABLE]) as session:
        session.send_bytes(b'{"process": %d}' % os.getpid())
        while text := receive(session):
            job = TileJob.from_json(text)
            device.open(_DEVICE, job.memory, job.device)
            started = time.perf_counter()
            for engine in range(job.engines):
                host.start(_host_job(job), engine)
            tile.start(job)
            await FallingEdge(dut.idle)
            reported = started
            while not dut.idle.value:
                await First(RisingEdge(dut.idle), Timer(BLOCK_CYCLES * PERIOD_PS, "ps"))
                now = time.perf_counter()
                if now - reported > REPORT_SECONDS:
                    reported = now
                    cycles = max(host.cycles(engine) for engine in range(job.engines))
                    session.send_bytes(b'{"cycles": %d}' % cycles)
            result = TileResult(
                engines=tuple(EngineResult(**host.result(engine)) for engine in range(job.engines)),
                violation=device.violation(_DEVICE),
                counters=tile.counters(),
                commands=device.counts(_DEVICE),
                windows=device.recorded(_DEVICE),
                wall_seconds=time.perf_counter() - started,
            )
            session.send_bytes(result.to_json())


def _host_job(job: TileJob) -> HostJob:
    """The run of one engine. Its memory and its identity are the tile's business."""
    return HostJob(
        words=job.words,
        memory="",
        behaviour=MemoryBehaviour(),
        reset=True,
        parameters=job.parameters,
        max_cycles=job.max_cycles,
        stop_cycles=job.stop_cycles,
        identity=(0, 0, 0, 0),
    )
