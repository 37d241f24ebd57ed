"""The load history: convolutions with it, and with a line buffer; area and clock."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from microkernels.runtime.job import KernelJob
from pe.config import PeConfig
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.workloads.tiles import declared_job, round_job, with_engines, with_history
from soc.generate.presets import preset, tile_preset
from soc.tile.config import VaultTileConfig
from synth.physical.area import synthesise

from .harness.experiment import CELLS, SIMULATION, Measurement, experiment
from .harness.parts import engine_areas, engine_clocks
from .harness.runs import launch_runs, together

#: A round of filters of three convolutions.
_KERNELS = ("conv1_1", "conv3_2", "conv5_1")

_LATENCY = 60


_ENTRIES = (8, 16, 32, 64)

_WAYS = {1: "1_way", 2: "2_ways", 4: "4_ways", 0: "any_way"}

#: What all but the sweep has, and its line buffer.
_CHOSEN, _CHOSEN_WAYS, _LINES = 32, 4, 64

_FEW, _MANY = 4, 8

#: A kernel that the benchmark of the line buffer does not run on eight engines.
_LEFT = "conv1_1"


def _engine(entries: int, ways: int = _CHOSEN_WAYS) -> PeConfig:
    return with_history(preset("pe"), entries, ways)


def _vault(pes: int, entries: int, lines: int) -> VaultTileConfig:
    """A vault; without a history its engines are the preset's."""
    tile = with_engines(tile_preset("vault"), pes)
    pe = with_history(tile.pe, entries, _CHOSEN_WAYS) if entries else tile.pe
    return replace(tile, line_buffer=lines, pe=pe)


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
        yield prefix, round_job(_LEFT, _MANY, reuse=False), _vault(_MANY, 0, lines)


@experiment(presets=("pe", "vault"), tools=(*CELLS, *SIMULATION[1:]), minutes=60)
def history() -> Iterator[Measurement]:
    """What a load history saves, in Verilog: columns of convolutions' images, and cycles.

    The share of the image's columns that one engine copies, for each number of entries and ways, of
    convolutions that load each window whole. Columns that a vault of four and of eight engines
    reads, and its cycles, with a history of 32 entries, without and with a line buffer of 64 lines;
    ``line_buffer`` has the same without a history. And an engine's area, and its clock in
    Nangate 45 nm, mapped for speed. Every output is compared with the golden model's.
    """
    memory = MemoryBehaviour(latency=_LATENCY)
    for name, entries, (ways, word) in product(_KERNELS, _ENTRIES, _WAYS.items()):
        job, config = declared_job(name, 1), _engine(entries, ways)
        (run,) = launch_runs(job, config, name, on="rtl", memory=memory).values()
        prefix = f"{name}_{entries}_entries_{word}"
        yield Measurement(f"{prefix}_cycles", run.counters["CYCLES"], "cycles")
        # Share of the declared image's loaded columns that came from the scratchpad.
        hits = run.counters["HISTORY_HITS"]
        share = hits / (hits + run.counters["WORKSPACE_COLUMNS"])
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
