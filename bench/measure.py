"""What is measured, and how far a measurement may be from the record."""

import os
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from unittest.mock import patch

from kernels.stereo import motorcycle
from sim_tb.applications import choose
from sim_tb.bp_cosim import BpJob, cosim_bp
from sim_tb.chip_bp import cosim_chip_bp
from sim_tb.chip_top import build_chip
from sim_tb.cosim import CosimError, MemoryBehaviour
from sim_tb.kernel_bench import measure_kernels
from soc.generate import generate
from soc.presets import chip_preset, preset, tile_preset
from synth.area import synthesise
from synth.budget import find_budget
from synth.devices import GRADES
from synth.place import place
from synth.power import THESIS_MHZ
from vip.fitting import fit_application
from vip.power import engine_power
from vip.report import KERNELS, record
from vip.trim_bench import measure_trims
from vip.trim_gain import estimate_gains
from vip.trim_rows import means

__all__ = ["BENCHMARKS", "Measurement", "measure"]

#: Applications that a device is filled for.
_FITTED = ("matrix-addition",)


@dataclass(frozen=True)
class Measurement:
    """A figure.

    Attributes:
        name: what it is of. value: the figure. unit: its unit.
        tolerance: a record and a new measurement may differ by this share of the record;
            None: it depends on the machine and is only recorded.
        more_is_better: direction of an improvement.
    """

    name: str
    value: float
    unit: str
    tolerance: float | None = 0.0
    more_is_better: bool = False


def _belief_propagation() -> Iterator[Measurement]:
    """BP-M on the Motorcycle pair, 64 x 48 pixels, 16 labels of 16 bits, one iteration."""
    problem = motorcycle(64, 48, 16).problem
    for latency in (20, 60):
        memory = MemoryBehaviour(latency=latency)
        outcome = cosim_bp(BpJob(problem=problem, iterations=1, memory=memory), preset("pe"))
        if not outcome.match:
            raise CosimError("the kernel's messages differ from the golden model's")
        yield Measurement(
            f"bp_cycles_per_update_latency_{latency}", outcome.cycles_per_update, "cycles", 0.001
        )
    yield Measurement(
        "pe_simulation_speed", outcome.result.cycles_per_second, "cycles/s", None, True
    )


def _kernels() -> Iterator[Measurement]:
    """Belief propagation, layers of VGG-16 and an LSTM on 32 vaults, from one tile of each."""
    for row in measure_kernels(tile_preset("vault")):
        if not row.match:
            raise CosimError(f"{row.name}: outputs differ from the golden model's")
        yield Measurement(f"{row.name}_batch_{row.batch}", row.ours_ms, "ms", 0.01)


def _generation() -> Iterator[Measurement]:
    """Verilog of one engine."""
    with TemporaryDirectory() as folder:
        started = time.perf_counter()
        report = generate(preset("pe"), f"{folder}/pe")
        yield Measurement("generate_pe", time.perf_counter() - started, "s", None)
    yield Measurement("generate_pe_verilog", report.bytes, "bytes", 0.02)


def _area() -> Iterator[Measurement]:
    """Area of one engine, by unit in gate equivalents and in total for 7-series."""
    generic = synthesise(preset("pe"), "generic")
    for row in (*generic.rows, generic.total):
        yield Measurement(f"logic_ge_{row.unit}", row.values["logic_ge"], "GE", 0.01)
    xc7 = synthesise(preset("pe"), "xc7").total
    for name in ("luts", "ffs", "dsps", "brams"):
        yield Measurement(f"xc7_{name}", xc7.values[name], name, 0.01)


def _fitting() -> Iterator[Measurement]:
    """SCRATCH's device filled with full engines and with ones trimmed to an application, which all
    of them run."""
    budget = find_budget("xc7vx690t")
    for application in choose(_FITTED):
        found = fit_application(application, budget, lambda step: None)
        if not found.match:
            raise CosimError(f"{application.name}: engines of a chip leave other results")
        name = application.name.replace("-", "_")
        for kind, chip, copies in (
            ("full", found.full, found.copies_full),
            ("trimmed", found.trimmed, found.copies_trimmed),
        ):
            grid = chip.grid
            yield Measurement(f"{name}_{kind}_engines", grid.total, "", 0.0, True)
            yield Measurement(f"{name}_{kind}_vaults", grid.vaults, "", None)
            yield Measurement(f"{name}_{kind}_luts", chip.area.total.values["luts"], "", 0.02)
            yield Measurement(f"{name}_{kind}_cycles", copies.cycles, "cycles", 0.01)
        yield Measurement(f"{name}_gain", round(found.gain, 3), "", 0.01, True)


def _trimming() -> Iterator[Measurement]:
    """Engines trimmed to each application of the suite, and to unions of some, for 7-series:
    fractions saved, and their means over the applications. Takes an hour of a processor."""
    rows = measure_trims()
    gains = estimate_gains(rows, lambda step: None)
    for row in rows:
        if not (row.match and row.exact):
            raise CosimError(f"{row.name}: the trimmed engine does not do what the full one does")
        name = row.name.replace(" ", "_").replace("-", "_")
        for measure in ("luts", "ffs", "dsps", "brams"):
            saved = row.saved(measure)
            yield Measurement(f"{name}_saved_{measure}", saved, "fraction", 0.02, True)
        yield Measurement(f"{name}_mw_full", row.power_full["mw"], "mW", 0.02)
        yield Measurement(f"{name}_mw_trimmed", row.power_trimmed["mw"], "mW", 0.02)
        yield Measurement(f"{name}_cycles", row.cycles_trimmed, "cycles", 0.01)
        gain = gains[row.name].throughput_gain
        yield Measurement(f"{name}_estimated_gain", gain, "", 0.05, True)
    for name, mean in means(rows).items():
        yield Measurement(name, mean, "fraction", 0.02, True)


def _standard_cells() -> Iterator[Measurement]:
    """Area and clock of one engine in Nangate 45 nm, before layout."""
    report = synthesise(preset("pe"), "nangate45")
    for row in (*report.rows, report.total):
        yield Measurement(f"nangate45_ge_{row.unit}", row.values["logic_ge"], "GE", 0.01)
        if "fmax_mhz" in row.values:
            mhz = row.values["fmax_mhz"]
            yield Measurement(f"nangate45_mhz_{row.unit}", mhz, "MHz", 0.02, True)


def _placement() -> Iterator[Measurement]:
    """Clock of one engine on an ECP5-85F of the slowest and the fastest grade, median of five
    seeds; takes minutes a seed."""
    report = place(preset("pe"), "ecp5-85k", seeds=5)
    yield Measurement("ecp5_85k_mhz", report.fmax_mhz, "MHz", 0.05, True)
    fastest = place(preset("pe"), f"ecp5-85k-{GRADES[-1]}", seeds=5)
    yield Measurement(f"ecp5_85k_{GRADES[-1]}_mhz", fastest.fmax_mhz, "MHz", 0.05, True)
    for name, value in report.used.items():
        yield Measurement(f"ecp5_{name}", value, name, 0.01)


def _power() -> Iterator[Measurement]:
    """Power of one engine in Nangate 45 nm with gated clocks, and scaled to the thesis's node."""
    config = preset("pe")
    for kernel in KERNELS:
        found = engine_power([record(kernel, config)], config, "nangate45").report
        scaled = found.at_thesis_node()
        mw = found.total.milliwatts(1000)
        yield Measurement(f"{kernel}_mw_at_1_ghz", round(mw, 2), "mW", 0.02)
        mw = scaled.total.milliwatts(THESIS_MHZ)
        yield Measurement(f"{kernel}_mw_at_28_nm", round(mw, 2), "mW", 0.02)
        for what in found.work:
            pj = round(scaled.energy_pj(what, THESIS_MHZ), 2)
            name = what.replace(" ", "_").replace("-", "_")
            yield Measurement(f"{kernel}_pj_per_{name}_at_28_nm", pj, "pJ", 0.02)
        for row in scaled.rows:
            mw = round(row.milliwatts(THESIS_MHZ), 3)
            yield Measurement(f"{kernel}_mw_at_28_nm_{row.unit}", mw, "mW", 0.05)


def _chip() -> Iterator[Measurement]:
    """The thesis's chip: its Verilog, its simulator, and an iteration of BP-M on all 128 engines,
    64 x 34 pixels, 16 labels of 16 bits. Takes three minutes of a processor.

    Building and running are told in seconds of the processor, as they are long and others may use
    it too.
    """
    config = chip_preset("thesis")
    with TemporaryDirectory() as folder, patch.dict(os.environ, VIP_BUILD_DIR=folder):
        started = time.perf_counter()
        report = generate(config, f"{folder}/chip")
        yield Measurement("generate_chip", time.perf_counter() - started, "s", None)
        yield Measurement("generate_chip_verilog", report.bytes, "bytes", 0.02)
        before = _spent()
        build_chip(config)
        yield Measurement("chip_simulator_build", _spent() - before, "s", None)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        yield Measurement("chip_simulator_build_memory", peak / 1024, "MiB", None)
        before = _spent()
        problem = motorcycle(64, 34, 16).problem
        outcome = cosim_chip_bp(problem, 1, config, counters=False, preload=True)
    if not outcome.match:
        raise CosimError("the kernel's messages differ from the golden model's")
    result = outcome.result
    speed = result.simulated_cycles / (_spent() - before)
    yield Measurement("chip_bp_cycles", result.cycles, "cycles", 0.02)
    yield Measurement("chip_simulation_speed", speed, "cycles/s", None, True)


def _spent() -> float:
    """Seconds of a processor that ended child processes took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


#: Name -> benchmark.
BENCHMARKS: dict[str, Callable[[], Iterator[Measurement]]] = {
    "bp": _belief_propagation,
    "kernels": _kernels,
    "generate": _generation,
    "area": _area,
    "standard_cells": _standard_cells,
    "power": _power,
    "placement": _placement,
    "trim": _trimming,
    "fit": _fitting,
    "chip": _chip,
}


def measure(name: str) -> list[Measurement]:
    """Run one of :data:`BENCHMARKS`."""
    return list(BENCHMARKS[name]())
