"""The load history: convolutions with it, and with a line buffer; area and clock."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from microkernels.apps.lowered_convolution import (
    upsampled_convolution_job,
)
from microkernels.nn.conv_shape import ConvShape
from microkernels.runtime.job import KernelJob
from pe.config import PeConfig
from pe.interface import HistoryCounter
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.workloads.tiles import (
    declared_job,
    layer_job,
    with_engines,
    with_history,
)
from soc.generate.presets import preset, tile_preset
from soc.tile.config import VaultTileConfig
from synth.physical.area import synthesise

from .harness.experiment import CELLS, SIMULATION, Measurement, experiment
from .harness.parts import engine_areas, engine_clocks
from .harness.runs import launch_runs, together
from .workspace import LAYERS, product_job

#: A round of filters of three convolutions.
_KERNELS = ("conv1_1", "conv3_2", "conv5_1")

_LATENCY = 60


def _counters(job: KernelJob, config: PeConfig) -> Mapping[str, int]:
    """Counters of one engine that runs ``job``, in Verilog, with a memory latency of 60 cycles;
    those of :class:`pe.interface.HistoryCounter` are 0 without a history."""
    memory = MemoryBehaviour(latency=_LATENCY)
    (run,) = launch_runs(job, config, job.name, on="rtl", memory=memory).values()
    return {**dict.fromkeys(HistoryCounter.__members__, 0), **run.counters}


_ENTRIES = (8, 16, 32, 64)

_WAYS = {1: "1_way", 2: "2_ways", 4: "4_ways", 0: "any_way"}

#: What all but the sweep has, and its line buffer.
_CHOSEN, _CHOSEN_WAYS, _LINES = 32, 4, 64

_FEW, _MANY = 4, 8

#: A kernel that the benchmark of the line buffer does not run on eight engines.
_LEFT = "conv1_1"

#: Kernels with sums of earlier slices.
_SLICED = tuple(name for name in _KERNELS if name != _LEFT)

_SEED = 1

#: Slices of channels for matrix products.
_PRODUCTS = {
    **{name: LAYERS[name] for name in ("14x14", "28x14", "stride_2")},
    "kernel_5": ConvShape(width=14, height=14, channels=8, filters=32, padding=2, kernel=5),
    "kernel_5_stride_2": ConvShape(
        width=27, height=27, channels=8, filters=32, padding=2, kernel=5, stride=2
    ),
}

#: Sides of the images in slices of transposed convolutions of a network that generates images (TC1
#: and TC2 of Duplo's table, 5 x 5 pixels).
_UPSAMPLED = (4, 8)
#: Way to store an image -> whether its zeros are left out.
_UPSAMPLED_WAYS = {"zeros": False, "phases": True}


def _engine(entries: int, ways: int = _CHOSEN_WAYS) -> PeConfig:
    return with_history(preset("pe"), entries, ways)


def _vault(pes: int, entries: int, lines: int) -> VaultTileConfig:
    """A vault; without a history its engines are the preset's."""
    tile = with_engines(tile_preset("vault"), pes)
    pe = with_history(tile.pe, entries, _CHOSEN_WAYS) if entries else tile.pe
    return replace(tile, line_buffer=lines, pe=pe)


@cache
def _upsampled(side: int, way: str) -> KernelJob:
    generator = np.random.default_rng(_SEED)
    image = generator.integers(-200, 200, (side, side, 8))
    filters = generator.integers(-100, 100, (16, 5, 5, 8))
    return upsampled_convolution_job(
        image.astype(np.int16),
        filters.astype(np.int16),
        fraction=6,
        phases=_UPSAMPLED_WAYS[way],
    )


def _engine_runs() -> Iterator[tuple[str, KernelJob, PeConfig]]:
    """Prefix of the figures, job and engine of each run on one engine."""
    for name in _KERNELS:
        job = declared_job(name, 1)
        for entries in _ENTRIES:
            for ways, word in _WAYS.items():
                yield f"{name}_{entries}_entries_{word}", job, _engine(entries, ways)
    for name, shape in _PRODUCTS.items():
        yield f"product_{name}", product_job(shape), _engine(_CHOSEN)
    for side in _UPSAMPLED:
        for way in _UPSAMPLED_WAYS:
            for entries in (0, _CHOSEN):
                prefix = f"upsampled_{side}x{side}_{way}_{entries}_entries"
                yield prefix, _upsampled(side, way), _engine(entries)


def _vault_runs() -> Iterator[tuple[str, KernelJob, VaultTileConfig]]:
    """Prefix of the figures, job and vault of each run on a vault."""
    for pes in (_MANY, _FEW):
        for lines in (0, _LINES):
            for name in _KERNELS:
                prefix = f"{name}_{pes}_engines_{_CHOSEN}_entries_{lines}_lines"
                yield prefix, declared_job(name, pes), _vault(pes, _CHOSEN, lines)
    # `line_buffer` has the other runs without a history.
    for lines in (0, _LINES):
        prefix = f"{_LEFT}_{_MANY}_engines_0_entries_{lines}_lines"
        yield prefix, layer_job(_LEFT, _MANY, reuse=False), _vault(_MANY, 0, lines)
    for lines in (0, _LINES):
        for name in _SLICED:
            prefix = f"{name}_sums_first_{lines}_lines"
            declared = declared_job(name, _MANY, sums_first=True)
            yield f"{prefix}_{_CHOSEN}_entries", declared, _vault(_MANY, _CHOSEN, lines)
            for word, reuse in (("whole", False), ("shared", True)):
                job = layer_job(name, _MANY, reuse=reuse, sums_first=True)
                yield f"{prefix}_{word}", job, _vault(_MANY, 0, lines)


@experiment(presets=("pe", "vault"), tools=(*CELLS, *SIMULATION[1:]), minutes=60)
def history() -> Iterator[Measurement]:
    """What a load history saves, in Verilog: columns of convolutions' images, and cycles.

    The share of the image's columns that one engine copies, for each number of entries and ways, of
    convolutions that load each window whole, and of products of matrices from a workspace, also for
    upsampled images, which are stored with their zeros or taken apart into phases. Columns that a
    vault of four and of eight engines reads, and its cycles, with a history of 32 entries, without
    and with a line buffer of 64 lines; ``line_buffer`` has the same without a history. Eight
    engines with all of these once more, whose programs load earlier sums first. And an engine's
    area, and its clock in Nangate 45 nm, mapped for speed. Every output is compared with the golden
    model's.
    """
    for prefix, job, config in _engine_runs():
        counters = _counters(job, config)
        yield Measurement(f"{prefix}_cycles", counters["CYCLES"], "cycles")
        if config.load_history:
            # Share of the declared image's loaded columns that came from the scratchpad.
            hits = counters["HISTORY_HITS"]
            share = hits / (hits + counters["WORKSPACE_COLUMNS"])
            yield Measurement(f"{prefix}_share", share, "of columns", 0.0, True)
    for prefix, job, tile in _vault_runs():
        run = together(launch_runs(job, tile, prefix, on="rtl").values())
        yield Measurement(f"{prefix}_cycles", run.cycles, "cycles")
        yield Measurement(f"{prefix}_columns", run.vaults["READS"], "columns")
    for entries in (0, *_ENTRIES):
        yield from engine_areas(f"{entries}_entries", _engine(entries))
        bits = synthesise(_engine(entries), "generic").total.values["sram_bits"]
        yield Measurement(f"{entries}_entries_sram_bits", bits, "bits", 0.01)
    for entries in (0, _CHOSEN):
        yield from engine_clocks(f"{entries}_entries", _engine(entries))
