"""Convolutions of a network with a load history, a line buffer, or windows that share columns."""

from collections.abc import Iterator

import sim_tb.measure.reuse.network_reuse
from bench import fingerprints
from bench.functional import model_parts
from bench.measurement import Measurement
from microkernels.common.feature_map import COLUMN_BYTES
from sim_tb.measure.reuse.column_reuse import LAYERS
from sim_tb.measure.reuse.network_reuse import WAYS, measure_way, way_job, way_vault
from soc.generate.presets import tile_preset

__all__ = ["made_of_network_reuse", "network_reuse"]

_ENGINES = 8
_VAULTS = 32
#: The thesis's energy of a Hybrid Memory Cube, in pJ a bit.
_PJ_PER_BIT = 10


def network_reuse() -> Iterator[Measurement]:
    """What reuse of data saves in VGG-16's convolutions on vaults of eight engines, on the timing
    model: cycles and DRAM columns of a round of filters of each, every output compared with the
    golden model's; with a load history, a line buffer, both, windows that share columns, and these
    and a line buffer. And, counted from these rounds, the cycles of the convolutions of an image,
    what they read on 32 vaults, and its energy at 10 pJ a bit."""
    tile = tile_preset("vault")
    for word, way in WAYS.items():
        columns = cycles = 0
        for name, alike in LAYERS.items():
            run = measure_way(name, tile, _ENGINES, way)
            yield Measurement(f"{name}_{word}_cycles", run.cycles, "cycles")
            yield Measurement(f"{name}_{word}_columns", run.columns, "columns")
            columns += run.columns * run.rounds * alike
            cycles += run.cycles * run.rounds * alike
        read = _VAULTS * columns * COLUMN_BYTES
        yield Measurement(f"vgg16_{word}_cycles_counted", cycles, "cycles")
        yield Measurement(f"vgg16_{word}_gb_counted", read / 1e9, "GB")
        energy = read * 8 * _PJ_PER_BIT / 1e9
        yield Measurement(f"vgg16_{word}_mj_counted", energy, "mJ")


def made_of_network_reuse() -> dict[str, str]:
    """The machines, the model of them, and the programs."""
    prints = {}
    tile = tile_preset("vault")
    for word, way in WAYS.items():
        machine = way_vault(tile, _ENGINES, way)
        prints[f"Verilog with {word}"] = fingerprints.hardware(machine)
        jobs = [way_job(name, _ENGINES, way) for name in LAYERS]
        prints[f"programs with {word}"] = fingerprints.programs(
            launch.program for job in jobs for launch in job.launches
        )
    return {
        **prints,
        "what is measured": fingerprints.code(sim_tb.measure.reuse.network_reuse),
        **model_parts(),
    }
