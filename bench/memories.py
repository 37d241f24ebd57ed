"""Benchmarks of a vault's memory and of the network, and the network's area."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import sim_tb.measure.network
import sim_tb.measure.network_cases
import sim_tb.measure.preload
import sim_tb.measure.reuse.line_buffer
import sim_tb.measure.vault
import sim_tb.measure.vault_bp
import sim_tb.measure.vault_stress
from hdl.component import Component
from hdl.config import SramKind
from hdl.emission import emit
from memory.line_buffer.line_buffer import LineBuffer
from memory.preload import Preload
from microkernels.bp.kernel import bp_program
from noc.config import NetworkConfig
from noc.node.node import Node
from noc.router.router import Router
from sim_tb.cosim.applications import applications
from sim_tb.cosim.kernels import job_key
from sim_tb.cosim.machine import Timed
from sim_tb.dut.chip import chip_design
from sim_tb.dut.memory import vault_design
from sim_tb.dut.network import network_design
from sim_tb.dut.tile import tile_design
from sim_tb.measure.network import measure_network
from sim_tb.measure.network_cases import SIZES
from sim_tb.measure.preload import (
    BESIDE,
    ENGINES,
    LATENCIES,
    SIZE,
    engines_chip,
    measure_preload,
    preload_chip,
)
from sim_tb.measure.reuse.column_reuse import with_engines
from sim_tb.measure.reuse.line_buffer import KERNELS, buffered, buffered_job, measure_buffered
from sim_tb.measure.vault import VARIANTS, measure
from sim_tb.measure.vault_bp import measure_bp
from sim_tb.measure.vault_stress import random_case, run_stress
from soc.generate.presets import chip_preset, tile_preset
from soc.tile.config import VaultTileConfig
from synth.physical.area import measure_unit, synthesise
from synth.physical.targets import find_target
from synth.physical.units import Unit

from . import fingerprints
from .measurement import Measurement
from .terminal import say

__all__ = [
    "buffered_runs",
    "line_buffer",
    "made_of_line_buffer",
    "made_of_network",
    "made_of_network_area",
    "made_of_preload",
    "made_of_vault",
    "made_of_vault_bp",
    "made_of_vault_stress",
    "network",
    "network_area",
    "preload",
    "vault",
    "vault_bp",
    "vault_figures",
    "vault_stress",
]

_TILE = "vault"
#: 32-byte accesses of each traffic.
_ACCESSES = 200_000
#: Accesses to random vaults, and how many of these.
_STRESS, _VAULTS = 10_000_000, 16
#: Flits of random traffic through all networks together.
_FLITS = 105_000_000
_SEED = 1
#: Lines of a buffer in most runs; of one kernel, and whose area is measured; and that kernel.
_LINES = 64
_BUFFERS = (32, 64, 128)
_SIZED = "conv5_1"
#: Engines of most runs, and of those that need more than the bus gives; the latter's kernels.
_FEW, _MANY = 4, 8
_CROWDED = ("conv3_2", "conv5_1")


def _key(name: str) -> str:
    """``name`` in the form of a figure's name."""
    return name.lower().replace(" x ", "x").replace(",", "").replace(" ", "_").replace("-", "_")


def vault() -> Iterator[Measurement]:
    """32-byte accesses straight into the controller, for each variant of a vault's memory."""
    return vault_figures("rtl")


def vault_figures(on: Timed) -> Iterator[Measurement]:
    """The figures of :func:`vault` on the Verilog, or on the timing model."""
    report = measure(VARIANTS, accesses=_ACCESSES, seed=_SEED, on=on)
    for name, row in report.rows.items():
        for traffic, found in row.items():
            key = f"{_key(name)}_{traffic}"
            if traffic == "idle_random_read":
                yield Measurement(key, found.mean, "cycles", 0.01)
            else:
                yield Measurement(key, found.gbs, "GB/s", 0.01, True)


def made_of_vault() -> dict[str, str]:
    """The memory in each variant, with the models around it, and the traffic."""
    found = {"traffic": fingerprints.code(sim_tb.measure.vault)}
    for variant in VARIANTS:
        design = vault_design(variant.config, variant.requesters)
        found |= fingerprints.simulator(f"the memory {variant.name}", design)
    return found


def vault_bp() -> Iterator[Measurement]:
    """BP-M on a vault's engines, 60 x 34 pixels, one iteration, for each variant of its memory."""
    for name, row in measure_bp(tile_preset(_TILE)).items():
        key = _key(name)
        yield Measurement(f"{key}_gbs", row.gbs, "GB/s", 0.01, True)
        yield Measurement(f"{key}_cycles_per_update", row.cycles_per_update, "cycles", 0.01)
        yield Measurement(f"{key}_row_hits", row.row_hits, "fraction", 0.02, True)
        yield Measurement(f"{key}_late", row.late, "fraction", 0.05)
        yield Measurement(f"{key}_refresh_blocked", row.refresh_blocked, "banks", 0.05)


def made_of_vault_bp() -> dict[str, str]:
    """The vault, its memory in each variant, the program, and the code that counts."""
    tile = tile_preset(_TILE)
    program = bp_program(16, 16, scratchpad_bytes=tile.pe.scratchpad_bytes)
    found = {
        **fingerprints.simulator("vault", tile_design(tile)),
        "program of BP": fingerprints.programs([program]),
        "what is counted": fingerprints.code(sim_tb.measure.vault_bp),
    }
    for variant in VARIANTS:
        if not variant.requesters:
            design = vault_design(variant.config, variant.requesters)
            found |= fingerprints.simulator(f"the memory {variant.name}", design)
    return found


def vault_stress() -> Iterator[Measurement]:
    """Random accesses to random vaults, every one checked."""
    report = run_stress(accesses=_STRESS, vaults=_VAULTS, seed=_SEED)
    yield Measurement("vaults", report.vaults, "configurations", 0.0, True)
    for name in ("accesses", "reads", "writes"):
        yield Measurement(name, getattr(report, name), "accesses", 0.0, True)
    yield Measurement("cycles", report.cycles, "cycles", 0.05)
    yield Measurement("longest", report.longest, "cycles", 0.05)
    yield Measurement("bound_of_the_longest", report.bound, "cycles", 0.05)


def made_of_vault_stress() -> dict[str, str]:
    """The first vaults of the random choice, with the models around them, and the random choice."""
    found = {"traffic": fingerprints.code(sim_tb.measure.vault_stress)}
    for seed in range(_SEED, _SEED + 3):
        case = random_case(seed, _STRESS // _VAULTS)
        design = vault_design(case.config, case.requesters)
        found |= fingerprints.simulator(f"the vault of seed {seed}", design)
    return found


def preload() -> Iterator[Measurement]:
    """The applications on an engine behind an AXI bus of three latencies, with their data in a
    preload memory, and on more engines in its place, in Verilog; every output is compared. And the
    7-series area of the memory and of an engine."""
    for row in measure_preload(progress=say):
        key = _key(row.name)
        for latency, cycles in zip(LATENCIES, row.cycles, strict=True):
            yield Measurement(f"{key}_{latency}", cycles, "cycles", 0.01)
            yield Measurement(f"{key}_gain_{latency}", cycles / row.preloaded, "", 0.01, True)
        yield Measurement(f"{key}_preloaded", row.preloaded, "cycles", 0.01)
        for latency, gain in zip(BESIDE, row.beside, strict=True):
            yield Measurement(f"{key}_engines_gain_{latency}", gain, "", 0.01, True)
    target = find_target("xc7")
    one = synthesise(engines_chip(1).pe, target.name).total.values
    for name in ("luts", "ffs", "brams"):
        yield Measurement(f"engine_{name}", one[name], name, 0.02)
    emission = emit(_preload(target.sram), "part")
    unit = Unit("preload", ((emission.top, 1),))
    values = measure_unit(unit, target, emission, emit(_preload("macro"), "part")).values
    for name in ("luts", "ffs", "brams"):
        yield Measurement(name, values[name], name, 0.02)


def _preload(sram: SramKind) -> Preload:
    """The memory of :func:`preload_chip`."""
    vault = preload_chip(SIZE).tile.vault
    return Preload(
        size=SIZE,
        base=vault.preload_base,
        address_bits=vault.request_address_bits,
        tag_bits=vault.tag_bits,
        sram=sram,
    )


def made_of_preload() -> dict[str, str]:
    """The chips with the models around them, the applications, and the mapping."""
    jobs = [job for application in applications() for job in application.jobs]
    target = find_target("xc7")
    return {
        **fingerprints.simulator("the chip", chip_design(preload_chip(0))),
        **fingerprints.simulator("the chip with preload", chip_design(preload_chip(SIZE))),
        "applications": fingerprints.data(*map(job_key, jobs)),
        **fingerprints.simulator("the chip with engines", chip_design(engines_chip(ENGINES))),
        "what is measured": fingerprints.code(sim_tb.measure.preload),
        "mapping for xc7": fingerprints.mapping(target),
        "Verilog of the engine for xc7": fingerprints.hardware(
            replace(engines_chip(ENGINES).pe, sram=target.sram)
        ),
        "Verilog of the memory for xc7": fingerprints.component(_preload(target.sram)),
    }


def network() -> Iterator[Measurement]:
    """Random traffic with back-pressure through networks of six sizes, every flit checked, and
    latency over rate."""
    report = measure_network(flits=_FLITS, seed=_SEED)
    yield Measurement("flits", sum(row.flits for row in report.stress), "flits", 0.0, True)
    yield Measurement("packets", sum(row.packets for row in report.stress), "packets", 0.0, True)
    yield Measurement("cases", len(report.stress), "networks and traffics", 0.0, True)
    for row in report.stress:
        key = _key(row.case)
        yield Measurement(f"{key}_flits", row.flits, "flits", 0.01, True)
        yield Measurement(f"{key}_cycles", row.cycles, "cycles", 0.01)
        yield Measurement(f"{key}_longest", row.longest, "cycles", 0.05)
    for curve in report.curves:
        key = f"{curve.columns}x{curve.rows}_{_key(curve.destinations)}"
        yield Measurement(f"{key}_limit", curve.limit, "flits a cycle and vault")
        yield Measurement(f"{key}_most", curve.saturation, "flits a cycle and vault", 0.01, True)
        yield Measurement(f"{key}_idle_latency", curve.points[0].mean, "cycles", 0.01)


def _areas() -> Iterator[tuple[str, str, Callable[[NetworkConfig], Component], NetworkConfig]]:
    """Name of the figure, target, component and configuration of the network, for each area."""
    thesis = chip_preset("thesis")
    whole = thesis.network
    small = replace(whole, columns=2, rows=2)

    def node(config: NetworkConfig) -> Component:
        return Node(config, requesters=thesis.tile.pes + 1)

    yield "router_8x4", "generic", Router, whole
    yield "router_8x4", "xc7", Router, whole
    yield "router_2x2", "xc7", Router, small
    yield "node_8x4", "xc7", node, whole


def network_area() -> Iterator[Measurement]:
    """Area of routers and of a node: gate equivalents beside the memories, and 7-series."""
    for name, target, make, config in _areas():
        chosen = find_target(target)
        emission = emit(make(replace(config, sram=chosen.sram)), "part")
        shapes = emit(make(replace(config, sram="macro")), "part")
        unit = Unit(name, ((emission.top, 1),))
        values = measure_unit(unit, chosen, emission, shapes).values
        if target == "generic":
            yield Measurement(f"{name}_kge", values["logic_ge"] / 1000, "kGE", 0.01)
        else:
            yield Measurement(f"{name}_luts", values["luts"], "luts", 0.01)
            yield Measurement(f"{name}_ffs", values["ffs"], "ffs", 0.01)


def made_of_network_area() -> dict[str, str]:
    """Routers and node as input of synthesis, and the mappings."""
    found = {
        f"mapping for {target}": fingerprints.mapping(find_target(target))
        for target in ("generic", "xc7")
    }
    for name, target, make, config in _areas():
        part = make(replace(config, sram=find_target(target).sram))
        found[f"Verilog of {name} for {target}"] = fingerprints.component(part)
    return found


def made_of_network() -> dict[str, str]:
    """The networks, the traffic, and the code that counts."""
    found = {"traffic": fingerprints.code(sim_tb.measure.network, sim_tb.measure.network_cases)}
    for columns, rows in SIZES:
        design = network_design(NetworkConfig(columns=columns, rows=rows))
        found |= fingerprints.simulator(f"the network of {columns} x {rows}", design)
    return found


def line_buffer() -> Iterator[Measurement]:
    """What a vault's line buffer saves, in Verilog: DRAM columns that kernels read and cycles,
    without and with 64 lines, on a vault of four engines; of conv5_1 for other sizes, and with
    windows that share columns; of two convolutions on eight engines, and how many times as fast as
    four engines without lines and with whole windows these are. Every output is compared with the
    golden model's. And the area of the buffer: gate equivalents beside its memories, bits of these,
    and 7-series."""
    # Operations and cycles of four engines. A round of eight has more filters.
    plain: dict[str, tuple[int, int]] = {}
    for prefix, name, config, reuse in buffered_runs():
        pes, lines = config.pes, config.line_buffer
        run = measure_buffered(name, config, lines, reuse=reuse)
        yield Measurement(f"{prefix}_cycles", run.cycles, "cycles")
        yield Measurement(f"{prefix}_columns", run.columns, "columns")
        if name in _CROWDED:
            work = buffered_job(name, config, reuse=reuse).operations
            if pes == _FEW and not lines and not reuse:
                plain[name] = work, run.cycles
            elif pes == _MANY:
                done, cycles = plain[name]
                times = work * cycles / (done * run.cycles)
                yield Measurement(f"{prefix}_times_four", times, "", more_is_better=True)
        for counter, value in run.lines.items():
            yield Measurement(f"{prefix}_{counter.lower()}", value, "", tolerance=None)
    for lines in _BUFFERS:
        for target in ("generic", "xc7"):
            sram = find_target(target).sram
            shape = emit(_buffer(lines, "macro"), "part")
            emission = emit(_buffer(lines, sram), "part")
            unit = Unit("line_buffer", ((emission.top, 1),))
            values = measure_unit(unit, find_target(target), emission, shape).values
            if target == "generic":
                yield Measurement(f"{lines}_lines_kge", values["logic_ge"] / 1000, "kGE", 0.01)
                yield Measurement(f"{lines}_lines_sram_bits", values["sram_bits"], "bits", 0.01)
            else:
                yield Measurement(f"{lines}_lines_luts", values["luts"], "luts", 0.01)
                yield Measurement(f"{lines}_lines_ffs", values["ffs"], "ffs", 0.01)


def buffered_runs() -> Iterator[tuple[str, str, VaultTileConfig, bool]]:
    """What :func:`line_buffer` runs: prefix of its figures, kernel, vault, whether windows share
    columns."""
    for name, pes, lines, reuse in _buffer_runs():
        prefix = f"{name}_{pes}_engines_{lines}_lines" + ("_shared" if reuse else "")
        yield prefix, name, buffered(with_engines(tile_preset(_TILE), pes), name, lines), reuse


def _buffer_runs() -> Iterator[tuple[str, int, int, bool]]:
    """Kernel, engines, lines, whether windows share columns."""
    for name in KERNELS:
        yield from ((name, _FEW, lines, False) for lines in (0, _LINES))
    yield from ((_SIZED, _FEW, lines, False) for lines in _BUFFERS if lines != _LINES)
    yield from ((_SIZED, _FEW, lines, True) for lines in (0, _LINES))
    for name in _CROWDED:
        for reuse in (False, True):
            yield from ((name, _MANY, lines, reuse) for lines in (0, _LINES))


def _buffer(lines: int, sram: SramKind) -> LineBuffer:
    """The buffer of a vault of :data:`_TILE`."""
    vault = tile_preset(_TILE).dram
    return LineBuffer(
        lines=lines,
        merges=4,
        address_bits=vault.request_address_bits,
        memory_bits=vault.address_bits,
        tag_bits=vault.tag_bits,
        counters=vault.counters,
        sram=sram,
    )


def made_of_line_buffer() -> dict[str, str]:
    """The machines, the programs, the data, and the buffer as synthesis takes it."""
    found: dict[str, str] = {}
    jobs = []
    for _, name, config, reuse in buffered_runs():
        found |= fingerprints.simulator(
            f"{config.pes} engines, {config.line_buffer} lines, {name}", tile_design(config)
        )
        jobs.append(buffered_job(name, config, reuse=reuse))
    for target in ("generic", "xc7"):
        found[f"mapping for {target}"] = fingerprints.mapping(find_target(target))
        for lines in _BUFFERS:
            part = _buffer(lines, find_target(target).sram)
            found[f"Verilog of {lines} lines for {target}"] = fingerprints.component(part)
    return {
        **found,
        "programs": fingerprints.programs(
            launch.program for job in jobs for launch in job.launches
        ),
        "what is measured": fingerprints.code(sim_tb.measure.reuse.line_buffer),
    }
