"""The cocotb test that performs runs within the simulator of nodes joined to a torus."""

import ctypes
import json
import os
import time
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, First, RisingEdge, Timer

from sim_tb.runner.jobs import JOBS_VARIABLE

from .memory_models import TrafficJob, TrafficModel, TrafficResult
from .models import MemoryBehaviour, MemoryModel

__all__ = ["serve"]

_PERIOD_PS = 800
_BLOCK_CYCLES = 10_000


@cocotb.test()
async def serve(dut: Any) -> None:
    """Perform the jobs in order."""
    library = ctypes.CDLL(None)
    memory, traffic = MemoryModel(library), TrafficModel(library)
    folder = Path(os.environ[JOBS_VARIABLE])
    raw = json.loads((folder / "jobs").read_text())
    image = str(folder / "image")
    memory.open(image)
    await Timer(_PERIOD_PS, "ps")
    with (folder / "results").open("w") as results:
        for job, behaviour in raw["jobs"]:
            for port in range(raw["ports"]):
                own = behaviour | {"seed": behaviour["seed"] + port, "errors": (0, 0)}
                memory.configure(port, MemoryBehaviour(**own))
            started = time.perf_counter()
            traffic.start(
                TrafficJob.from_dict(job),
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
            broken = [text for port in range(raw["ports"]) if (text := memory.violation(port))]
            found["violation"] = found["violation"] or "".join(broken[:1])
            result = TrafficResult(**found, commands={}, wall_seconds=time.perf_counter() - started)
            results.write(result.to_json() + "\n")
            results.flush()
