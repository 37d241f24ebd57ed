"""Benchmark of a memory with a clock of its own: applications, random traffic, area."""

from collections.abc import Iterator

import sim_tb.measure.two_clocks.stress
import sim_tb.measure.two_clocks.suite
from bench import fingerprints
from bench.measurement import Measurement
from bench.terminal import say
from hdl.component import Component
from hdl.config import SramKind
from hdl.emission import emit
from memory.crossing import CounterMirror, MemoryCrossing
from sim_tb.cosim.applications import applications
from sim_tb.cosim.kernels import job_key
from sim_tb.dut.chip import chip_design
from sim_tb.dut.memory import ports_of, vault_design
from sim_tb.measure.two_clocks.stress import clocks_of, run_clock_stress
from sim_tb.measure.two_clocks.suite import FACTORS, clocks_chip, measure_clocks
from sim_tb.measure.vault_stress import random_case
from soc.generate.presets import tile_preset
from soc.tile.clocks import ClockConfig
from synth.physical.area import measure_unit
from synth.physical.targets import find_target
from synth.physical.units import EngineUnit

__all__ = ["clocks", "made_of_clocks"]

_TILE = "vault"
_TARGETS = ("xc7", "ecp5")
#: Accesses to random vaults at all ratios together, and how many of these vaults.
_STRESS, _VAULTS, _SEED = 2_000_000, 4, 1


def clocks() -> Iterator[Measurement]:
    """The applications on an engine behind an AXI bus with a clock of its own, in Verilog; every
    output is compared. Random accesses to random vaults at every ratio. The area of a crossing."""
    for row in measure_clocks(progress=say):
        key = f"{row.name.replace('-', '_')}_{row.latency}"
        yield Measurement(f"{key}_one", row.one, "cycles", 0.01)
        for kind, cycles in (("faster", row.faster), ("same_ns", row.same_ns)):
            for factor, count in zip(FACTORS, cycles, strict=True):
                yield Measurement(f"{key}_{kind}_{factor}", count, "cycles", 0.01)
                yield Measurement(f"{key}_{kind}_{factor}_gain", row.one / count, "", 0.01, True)
    report = run_clock_stress(accesses=_STRESS, vaults=_VAULTS, seed=_SEED, progress=say)
    yield Measurement("stress_vaults", report.vaults, "configurations", 0.0, True)
    yield Measurement("stress_ratios", report.ratios, "ratios", 0.0, True)
    yield Measurement("stress_accesses", report.accesses, "accesses", 0.0, True)
    yield Measurement("stress_longest", report.longest, "cycles", 0.05)
    for target in _TARGETS:
        for name in ("crossing", "mirror"):
            values = _area(name, target)
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


def _area(name: str, target: str) -> dict[str, float]:
    chosen = find_target(target)
    emission = emit(_part(name, chosen.sram), "part")
    unit = EngineUnit(name, ((emission.top, 1),))
    return measure_unit(unit, chosen, emission, emit(_part(name, "macro"), "part")).values


def made_of_clocks() -> dict[str, str]:
    """The chips and the first random vaults with the models around them, the applications, the
    random choice, and the mappings."""
    jobs = [job for application in applications() for job in application.jobs]
    found = {
        "applications": fingerprints.data(*map(job_key, jobs)),
        "what is measured": fingerprints.code(
            sim_tb.measure.two_clocks.suite, sim_tb.measure.two_clocks.stress
        ),
    }
    for domains in ("one", "two"):
        design = chip_design(clocks_chip(ClockConfig(domains=domains)))
        found |= fingerprints.simulator(f"the chip with {domains} clocks", design)
    for seed in range(_SEED, _SEED + 2):
        case = random_case(seed, _STRESS // _VAULTS)
        design = vault_design(case.config, ports_of(case.requesters), clocks_of(seed))
        found |= fingerprints.simulator(f"the vault of seed {seed}", design)
    for target in _TARGETS:
        chosen = find_target(target)
        found[f"mapping for {target}"] = fingerprints.mapping(chosen)
        for name in ("crossing", "mirror"):
            found[f"Verilog of the {name} for {target}"] = fingerprints.component(
                _part(name, chosen.sram)
            )
    return found
