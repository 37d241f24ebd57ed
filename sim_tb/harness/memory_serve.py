"""The cocotb test that performs runs within the simulator of a vault's memory.

The environment names a file with the jobs and one for the results, a line each. Python wakes once
in a block of cycles; the models in C++ do the work of each cycle.
"""

import ctypes
import json
import os
import time
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, First, RisingEdge, Timer

from memory.model.device_model import DeviceModel, DeviceSetup
from sim_tb.runner.jobs import JOBS_VARIABLE

from .memory_models import TrafficJob, TrafficModel, TrafficResult

__all__ = ["serve"]

_PERIOD_PS = 800
_BLOCK_CYCLES = 100_000


@cocotb.test()
async def serve(dut: Any) -> None:
    """Perform the jobs in order."""
    library = ctypes.CDLL(None)
    device, traffic = DeviceModel(library), TrafficModel(library)
    folder = Path(os.environ[JOBS_VARIABLE])
    await Timer(_PERIOD_PS, "ps")
    with (folder / "results").open("w") as results:
        for line in (folder / "jobs").read_text().splitlines():
            raw = json.loads(line)
            image = str(folder / "image")
            device.open(0, image, DeviceSetup(**raw["setup"]))
            started = time.perf_counter()
            traffic.start(
                TrafficJob.from_dict(raw["job"]),
                image,
                size=raw["size"],
                limit=raw["limit"],
                counters=raw["counters"],
                settle=raw["settle"],
            )
            await FallingEdge(dut.idle)
            while not dut.idle.value:
                await First(RisingEdge(dut.idle), Timer(_BLOCK_CYCLES * _PERIOD_PS, "ps"))
            found = traffic.result()
            found["violation"] = found["violation"] or device.violation(0)
            result = TrafficResult(
                **found,
                commands=device.counts(0),
                wall_seconds=time.perf_counter() - started,
            )
            results.write(result.to_json() + "\n")
            results.flush()
