"""The cocotb test that performs runs within the simulator of a network.

The environment names a folder with a file of jobs; results go to a file beside it, a line each.
Python wakes once in a block of cycles; the model in C++ does the work of each cycle.
"""

import ctypes
import json
import os
import time
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, First, RisingEdge, Timer

from noc.config import NetworkConfig
from sim_tb.runner.jobs import JOBS_VARIABLE

from .network_models import NetworkJob, NetworkModel, NetworkResult

__all__ = ["serve"]

_PERIOD_PS = 800
_BLOCK_CYCLES = 100_000


@cocotb.test()
async def serve(dut: Any) -> None:
    """Perform the jobs in order."""
    traffic = NetworkModel(ctypes.CDLL(None))
    folder = Path(os.environ[JOBS_VARIABLE])
    raw = json.loads((folder / "jobs").read_text())
    config = NetworkConfig(**raw["config"])
    await Timer(_PERIOD_PS, "ps")
    with (folder / "results").open("w") as results:
        for job in raw["jobs"]:
            started = time.perf_counter()
            traffic.start(NetworkJob.from_dict(job), config)
            await FallingEdge(dut.idle)
            while not dut.idle.value:
                await First(RisingEdge(dut.idle), Timer(_BLOCK_CYCLES * _PERIOD_PS, "ps"))
            seconds = time.perf_counter() - started
            result = NetworkResult(**traffic.result(), wall_seconds=seconds)
            results.write(result.to_json() + "\n")
            results.flush()
