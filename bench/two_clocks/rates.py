"""Benchmark of the rates of both clocks of a vault's memory."""

from collections.abc import Iterator
from dataclasses import replace

import synth.physical.nextpnr_clocks
import synth.physical.vault_clocks
import synth.sram
import synth.timing.domains
import synth.timing.sta
from bench import fingerprints
from bench.measurement import Measurement
from hdl.clocks import CLOCK_PORTS
from soc.generate.presets import chip_preset, tile_preset
from soc.tile.clocks import ClockConfig
from soc.tile.config import VaultTileConfig
from synth.physical.asic import NANGATE45
from synth.physical.targets import find_target
from synth.physical.vault_clocks import place_vault, time_vault

__all__ = ["clock_rates", "made_of_clock_rates"]

_DEVICE, _SEEDS = "ecp5-85k-8", 3
#: What nextpnr aims at, in MHz: an engine's rate there, and a fast board's bus.
_ENGINE_MHZ, _MEMORY_MHZ = 100.0, 200.0
_CLOCKS = tuple(clock for clock, _ in CLOCK_PORTS.values())


def _vaults() -> dict[str, VaultTileConfig]:
    """Vaults by the name of their back end."""
    two = ClockConfig(domains="two")
    return {
        "dram": replace(tile_preset("vault"), clocks=two),
        "axi": replace(chip_preset("fpga").tile, clocks=two),
    }


def clock_rates() -> Iterator[Measurement]:
    """Rate of each clock of a vault's memory, and the longest path that crosses: in Nangate 45 nm
    before layout, with a DRAM controller and with an AXI bus, and the latter placed and routed on
    an ECP5-85F of the fastest grade, median of three seeds."""
    for name, vault in _vaults().items():
        paths = time_vault(vault)
        for clock in _CLOCKS:
            yield Measurement(f"{name}_{clock}", paths.longest[clock].fmax_mhz, "MHz", 0.02, True)
        longest = max(crossing.path.ns for crossing in paths.crossings)
        yield Measurement(f"{name}_crossing", longest, "ns", 0.02)
    placed = place_vault(
        _vaults()["axi"],
        _DEVICE,
        engine_mhz=_ENGINE_MHZ,
        memory_mhz=_MEMORY_MHZ,
        seeds=_SEEDS,
    )
    for clock in _CLOCKS:
        rates = [each.fmax_mhz[clock] for each in placed.placements]
        yield Measurement(f"ecp5_{clock}", placed.fmax_mhz(clock), "MHz", 0.05, True)
        yield Measurement(f"ecp5_{clock}_least", min(rates), "MHz", 0.05, True)
        yield Measurement(f"ecp5_{clock}_most", max(rates), "MHz", 0.05, True)
    crossings = [crossing.ns for each in placed.placements for crossing in each.crossings]
    yield Measurement("ecp5_crossing", max(crossings), "ns", 0.1)
    for name in ("luts", "ffs", "brams"):
        yield Measurement(f"ecp5_{name}", placed.used[name], name, 0.02)


def made_of_clock_rates() -> dict[str, str]:
    """The vaults as synthesis takes them, the mappings, analysis and placement."""
    found = {
        "mapping to standard cells": fingerprints.mapping(find_target(NANGATE45)),
        "mapping to ECP5": fingerprints.mapping(find_target("ecp5")),
        "timing analysis": fingerprints.code(synth.timing.sta, synth.timing.domains, synth.sram),
        "placement": fingerprints.code(synth.physical.vault_clocks, synth.physical.nextpnr_clocks),
    }
    for name, vault in _vaults().items():
        found[f"Verilog with {name}, macros"] = fingerprints.hardware(vault.with_sram("macro"))
    fpga = _vaults()["axi"].with_sram("fpga")
    return found | {"Verilog with axi for FPGAs": fingerprints.hardware(fpga)}
