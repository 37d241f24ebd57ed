"""Tasks of a sweep: plain data in, plain data out, so that they run in any process on any machine.

A task is a dictionary: ``kind``, ``configuration``, and for cycles ``kernel`` and ``on``, for power
``kernel``, for area ``target``. The result has measures by name, or ``error``: one line.
"""

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from pe.config import PeConfig
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.machine import Timed
from sim_tb.cosim.recorded import record_job
from sim_tb.runner.cache import fingerprint, source_digest
from soc.generate.designs import Configuration
from soc.generate.presets import configuration_of
from synth.physical.chip_area import design_area
from vip.executor.work import Task
from vip.synthesis.clocks import timing
from vip.synthesis.power import engine_power

from .kernels import SweepError, kernel_jobs

#: Rooms whose source decides results.
_ROOMS = ("support", "isa", "hdl", "pe", "memory", "noc", "soc", "microkernels", "sim_tb", "synth")
_STANDARD_CELLS = "nangate45"
#: :func:`run_task` for :mod:`vip.executor.work`.
WORK = "vip.sweeps.tasks:run_task"


def code_version() -> str:
    """Identifies the source that results depend on; the same on machines with the same VIP."""
    return f"{version('vip-inference')} {source_digest(_ROOMS)}"


def task_key(task: Task, code: str) -> str:
    """Name under which the result of ``task`` by source ``code`` is stored."""
    return fingerprint(code, json.dumps(task, sort_keys=True))


def run_task(task: Task) -> dict[str, Any]:
    """Measure.

    Raises:
        VipError: the input is refused.
    """
    config = engine_or_vault(configuration_of(task["configuration"]))
    if task["kind"] == "cycles":
        return _cycles(config, task["kernel"], task["on"])
    if task["kind"] == "area":
        return dict(design_area(config, task["target"]).values)
    if task["kind"] == "power":
        return _power(config, task["kernel"])
    return _clock(config.pe)


def engine_or_vault(config: Configuration) -> Configuration:
    """``config``, on which kernels of a sweep run.

    Raises:
        SweepError: it is a chip.
    """
    if config.kind == "chip":
        raise SweepError("a sweep's design must be an engine or a vault, not a chip")
    return config


def _cycles(config: Configuration, kernel: Mapping[str, Any], on: Timed) -> dict[str, Any]:
    cycles = busy = total = 0
    for job in kernel_jobs(kernel, config):
        outcome = run_on(job, config, on=on)
        if not outcome.match:
            raise SweepError(f"{job.name}: outputs differ from the golden model's")
        cycles += outcome.cycles
        counters = [values for run in outcome.results.values() for values in run.counters]
        busy += sum(values["VECTOR_BUSY"] for values in counters)
        total += sum(values["CYCLES"] for values in counters)
    share = {"vector_busy": round(busy / total, 6)} if total else {}
    return {"cycles": cycles, **share}


def _clock(config: PeConfig) -> dict[str, Any]:
    timed = timing(config, _STANDARD_CELLS, jobs=1)
    return {
        "fmax_mhz": round(timed.corners[0].pins.fmax_mhz, 1),
        "cells_logic_ge": timed.logic_ge,
    }


def _power(config: Configuration, kernel: Mapping[str, Any]) -> dict[str, Any]:
    """Energy per cycle and leakage, from which power at any clock follows."""
    if config.kind != "engine":
        raise SweepError("power can be measured for an engine only, not for a vault")
    runs = [record_job(job, config.pe, {}) for job in kernel_jobs(kernel, config)]
    total = engine_power(runs, config.pe, _STANDARD_CELLS, jobs=1).total
    return {
        "pj_per_cycle": round(total.dynamic * 1e-3, 4),
        "leakage_mw": round(total.leakage * 1e-6, 4),
    }
