"""Benchmarks of one engine: Verilog, area, clock and power; areas of all presets."""

from collections.abc import Iterator
from dataclasses import replace
from tempfile import TemporaryDirectory

import synth.physical.corners
import synth.physical.nextpnr
import synth.physical.place
import synth.physical.thesis_area
import synth.power.cell_energy
import synth.power.power
import synth.sram
import synth.timing.open_sta
import synth.timing.sta
import vip.synthesis.energy
from microkernels.bp.jobs import bp_job
from microkernels.bp.kernel import bp_program
from microkernels.data.stereo import motorcycle
from microkernels.nn.conv_loop import conv_loop_program
from sim_tb.cosim.engine import CosimError, MemoryBehaviour
from sim_tb.cosim.kernels import run_on
from soc.generate.generate import generate, verilog
from soc.generate.presets import PRESETS, preset
from synth.physical.area import synthesise
from synth.physical.devices import GRADES
from synth.physical.targets import find_target
from synth.power.power import THESIS_MHZ
from synth.sram import GATE_UM2
from vip.presets import MEASURED, figure_name, measure_areas
from vip.synthesis.clocks import timing
from vip.synthesis.energy import engine_power
from vip.synthesis.placement import place
from vip.synthesis.power import CONVOLUTION_POSITIONS, KERNELS, record

from . import fingerprints
from .measurement import Measurement, cpu_seconds

__all__ = [
    "area",
    "belief_propagation",
    "generation",
    "made_of_area",
    "made_of_belief_propagation",
    "made_of_generation",
    "made_of_placement",
    "made_of_power",
    "made_of_presets",
    "made_of_standard_cells",
    "placement",
    "power",
    "presets",
    "standard_cells",
]

_CELLS = "nangate45"
_SMALL_CELLS = "nangate45-area"
_DEVICE = "ecp5-85k"
_SEEDS = 5
_BP_SIZE = (64, 48, 16)


def belief_propagation() -> Iterator[Measurement]:
    """BP-M on the Motorcycle pair, 64 x 48 pixels, 16 labels of 16 bits, one iteration, beside a
    memory with a fixed latency in cycles."""
    problem = motorcycle(*_BP_SIZE).problem
    for latency in (20, 60):
        memory = MemoryBehaviour(latency=latency)
        outcome = run_on(bp_job(problem), preset("pe"), memory=memory)
        if not outcome.match:
            raise CosimError("the kernel's messages differ from the golden model's")
        yield Measurement(
            f"cycles_per_update_latency_{latency}", outcome.cycles_per_update, "cycles", 0.001
        )


def made_of_belief_propagation() -> dict[str, str]:
    """Engine, program and data."""
    config = preset("pe")
    problem = motorcycle(*_BP_SIZE).problem
    program = bp_program(16, 16, scratchpad_bytes=config.scratchpad_bytes)
    return {
        **fingerprints.engine("pe", config),
        "program of BP": fingerprints.programs([program]),
        "data of BP": fingerprints.data(problem.data_costs.tobytes()),
    }


def generation() -> Iterator[Measurement]:
    """Verilog of one engine."""
    verilog.cache_clear()
    with TemporaryDirectory() as folder:
        before = cpu_seconds()
        report = generate(preset("pe"), f"{folder}/pe")
        yield Measurement("cpu_seconds", cpu_seconds() - before, "s", None)
    yield Measurement("verilog", report.bytes, "bytes", 0.02)


def made_of_generation() -> dict[str, str]:
    """The engine."""
    return {"Verilog of pe": fingerprints.hardware(preset("pe"))}


def area() -> Iterator[Measurement]:
    """Area of one engine: by unit in gate equivalents and in mm2 of 28 nm, mapped for area, and in
    total for 7-series."""
    config = preset("pe")
    generic = synthesise(config, "generic")
    for row in (*generic.rows, generic.total):
        yield Measurement(f"logic_ge_{row.unit}", row.values["logic_ge"], "GE", 0.01)
    yield Measurement("logic_kge", generic.total.values["logic_ge"] / 1000, "kGE", 0.01)
    yield Measurement("mm2_28_nm", generic.total.values["area_um2"] / 1e6, "mm2", 0.01)
    xc7 = synthesise(config, "xc7").total
    for name in ("luts", "ffs", "dsps", "brams"):
        yield Measurement(f"xc7_{name}", xc7.values[name], name, 0.01)


def made_of_area() -> dict[str, str]:
    """The engine, both mappings, and the sources of areas at 28 nm."""
    return {
        **fingerprints.mapped("pe", preset("pe")),
        "mapping for area": fingerprints.mapping(find_target("generic")),
        "mapping for 7-series": fingerprints.mapping(find_target("xc7")),
        "areas at 28 nm": fingerprints.code(synth.physical.thesis_area, synth.sram),
    }


def standard_cells() -> Iterator[Measurement]:
    """Area and clock of one engine in Nangate 45 nm, before layout, of two netlists: one mapped for
    speed, also by unit, and one mapped for area. Clocks are with pins alone and with the library's
    wires, by our analysis and by OpenSTA where installed."""
    config = preset("pe")
    report = synthesise(config, _CELLS)
    for row in (*report.rows, report.total):
        yield Measurement(f"ge_{row.unit}", row.values["logic_ge"], "GE", 0.01)
        if "fmax_mhz" in row.values:
            yield Measurement(f"mhz_{row.unit}", row.values["fmax_mhz"], "MHz", 0.02, True)
    total = report.total.values["fmax_mhz"]
    yield Measurement("ns_total", 1000 / total, "ns", 0.02)
    memories = synthesise(config, "generic").total.values["sram_um2"]
    for target, prefix in ((_CELLS, ""), (_SMALL_CELLS, "area_")):
        netlist = timing(config, target)
        (found,) = netlist.corners
        yield Measurement(f"{prefix}kge", netlist.logic_ge / 1000, "kGE", 0.01)
        area = (GATE_UM2 * netlist.logic_ge + memories) / 1e6
        yield Measurement(f"{prefix}mm2_28_nm", area, "mm2", 0.01)
        for name in ("pins", "wires", "open_sta_pins", "open_sta_wires"):
            path = getattr(found, name)
            if path is not None:
                mhz = path.fmax_mhz
                yield Measurement(f"{prefix}corner_mhz_{name}", mhz, "MHz", 0.02, True)


def made_of_standard_cells() -> dict[str, str]:
    """The engine, its mappings, and the timing analysis."""
    return {
        "Verilog of pe with memory macros": fingerprints.hardware(
            replace(preset("pe"), sram="macro")
        ),
        "mapping to standard cells": fingerprints.mapping(find_target(_CELLS)),
        "mapping to standard cells for area": fingerprints.mapping(find_target(_SMALL_CELLS)),
        "timing analysis": fingerprints.code(
            synth.timing.sta, synth.physical.corners, synth.timing.open_sta, synth.sram
        ),
    }


def placement() -> Iterator[Measurement]:
    """Clock of one engine on an ECP5-85F of the slowest and the fastest grade, median of five
    seeds; takes minutes a seed."""
    for grade in (GRADES[0], GRADES[-1]):
        device = _DEVICE if grade == GRADES[0] else f"{_DEVICE}-{grade}"
        report = place(preset("pe"), device, seeds=_SEEDS)
        yield Measurement(f"mhz_grade_{grade}", report.fmax_mhz, "MHz", 0.05, True)
        clocks = [placed.fmax_mhz for placed in report.placements]
        yield Measurement(f"mhz_grade_{grade}_least", min(clocks), "MHz", 0.05, True)
        yield Measurement(f"mhz_grade_{grade}_most", max(clocks), "MHz", 0.05, True)
    for name, value in report.used.items():
        yield Measurement(f"used_{name}", value, name, 0.01)
        yield Measurement(f"capacity_{name}", report.device.capacity[name], name)
    yield Measurement("copies", report.device.copies(report.used), "engines", 0.0, True)


def made_of_placement() -> dict[str, str]:
    """The engine, its mapping, and the placement."""
    return {
        "Verilog of pe with memories for FPGAs": fingerprints.hardware(
            replace(preset("pe"), sram="fpga")
        ),
        "mapping to ECP5": fingerprints.mapping(find_target("ecp5")),
        "placement": fingerprints.code(synth.physical.place, synth.physical.nextpnr),
    }


def power() -> Iterator[Measurement]:
    """Power of one engine in Nangate 45 nm with gated clocks, and scaled to the thesis's node."""
    config = preset("pe")
    for kernel in KERNELS:
        found = engine_power([record(kernel, config)], config, _CELLS).report
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


def made_of_power() -> dict[str, str]:
    """The engine, its mapping, the kernels, and the model of power."""
    config = preset("pe")
    kernels = [
        bp_program(16, 16, scratchpad_bytes=config.scratchpad_bytes),
        conv_loop_program(CONVOLUTION_POSITIONS),
    ]
    return {
        "Verilog of pe with memory macros": fingerprints.hardware(replace(config, sram="macro")),
        "mapping to standard cells": fingerprints.mapping(find_target(_CELLS)),
        "programs": fingerprints.programs(kernels),
        "model of power": fingerprints.code(
            synth.power.power,
            synth.power.cell_energy,
            synth.power.power,
            synth.sram,
            vip.synthesis.energy,
        ),
    }


def presets() -> Iterator[Measurement]:
    """Area of every preset: gates and bits of memory, and cells of both kinds of FPGA."""
    for name in PRESETS:
        areas = measure_areas([name], lambda _: None)[name]
        for target, measures in MEASURED.items():
            for measure in measures:
                value = areas[target][measure]
                unit = {"logic_ge": "GE", "sram_bits": "bits"}.get(measure, measure)
                yield Measurement(figure_name(name, target, measure), value, unit, 0.01)


def made_of_presets() -> dict[str, str]:
    """The hardware of every preset, and the mappings."""
    hardware = {f"Verilog of {name}": fingerprints.hardware(PRESETS[name]) for name in PRESETS}
    mappings = {f"mapping {name}": fingerprints.mapping(find_target(name)) for name in MEASURED}
    return {**hardware, **mappings}
