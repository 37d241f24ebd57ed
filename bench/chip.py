"""Whole chips in Verilog: generation, simulator, an iteration of BP-M on all engines."""

import os
import resource
from collections.abc import Iterator
from dataclasses import replace
from tempfile import TemporaryDirectory
from unittest.mock import patch

from microkernels.data.stereo import motorcycle
from sim_tb.cosim.kernels import bp_job_on, run_on
from sim_tb.dut.chip import chip_design
from sim_tb.runner.build import build
from soc.chip.config import ChipConfig
from soc.generate.generate import generate, verilog
from soc.generate.presets import chip_preset

from .harness.experiment import SIMULATION, Measurement, child_seconds, cpu_seconds, experiment
from .harness.runs import exact

#: Preset of a chip -> pixels, labels, iterations, and whether the problem is preloaded into its
#: memory.
#: The thesis's chip with 2 x 2 vaults solves four full-HD tiles per vault.
_QUARTER = "thesis_2x2"

_CHIPS = {
    "tiny": ((24, 18, 16), 2, False),
    "small": ((48, 36, 16), 2, False),
    _QUARTER: ((240, 136, 16), 1, True),
    "thesis": ((64, 34, 16), 1, True),
}


def _chip(name: str) -> ChipConfig:
    if name != _QUARTER:
        return chip_preset(name)
    thesis = chip_preset("thesis")
    return replace(thesis, network=replace(thesis.network, columns=2, rows=2))


@experiment(presets=("tiny", "small", "thesis"), tools=SIMULATION, minutes=10)
def chip() -> Iterator[Measurement]:
    """The thesis's chip: its Verilog, its simulator, and an iteration of BP-M on all 128 engines.

    64 x 34 pixels; the same on smaller chips. Seconds are processor time.
    """
    for name, ((width, height, labels), iterations, preload) in _CHIPS.items():
        config = _chip(name)
        problem = motorcycle(width, height, labels).problem
        with TemporaryDirectory() as folder, patch.dict(os.environ, VIP_BUILD_DIR=folder):
            verilog.cache_clear()
            before = cpu_seconds()
            report = generate(config, f"{folder}/chip")
            yield Measurement(f"{name}_generate_cpu_seconds", cpu_seconds() - before, "s", None)
            yield Measurement(f"{name}_verilog", report.bytes, "bytes", 0.02)
            yield Measurement(f"{name}_verilog_mb", report.bytes / 1e6, "MB", 0.02)
            before = child_seconds()
            build(chip_design(config))
            yield Measurement(f"{name}_build_cpu_seconds", child_seconds() - before, "s", None)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            yield Measurement(f"{name}_build_mib", peak / 1024, "MiB", None)
            before = child_seconds()
            job = bp_job_on(problem, iterations, config)
            outcome = run_on(job, config, counters=name != "thesis", preload=preload)
            seconds = child_seconds() - before
            result = exact(outcome, name).result
            yield Measurement(f"{name}_bp_cycles", result.cycles, "cycles", 0.02)
            yield Measurement(f"{name}_remote_bytes", job.remote_bytes, "fraction", 0.02)
            if not preload:
                share = result.remote_share
                yield Measurement(f"{name}_remote_requests", share, "fraction", 0.02)
                other = run_on(job, config, outer=True)
                cycles = other.result.cycles
                yield Measurement(f"{name}_bp_cycles_cocotbext_axi", cycles, "cycles", 0.02)
            rate = result.simulated_cycles / seconds / 1000
            yield Measurement(f"{name}_kcycles_per_second", rate, "kcycles/s", None, True)
