"""What reuse of data saves: windows that share columns, a load history, a line buffer.

Layers of VGG-16, an LSTM and BP-M on a vault; every output is compared with the golden model's.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from hdl.config import SramKind
from memory.line_buffer.layout import LineCounter
from memory.line_buffer.line_buffer import LineBuffer
from microkernels.common.feature_map import COLUMN_BYTES
from microkernels.runtime.job import KernelJob
from pe.config import LOGISTIC_INSTRUCTIONS
from sim_tb.workloads.tiles import (
    ALIKE,
    belief_job,
    conv_rounds,
    convolution,
    declared_job,
    ese_job,
    layer_job,
    with_engines,
    with_history,
)
from soc.generate.presets import tile_preset
from soc.tile.config import VaultTileConfig
from vip.energy import DRAM_PJ_PER_BIT

from .harness.experiment import AMARANTH, SIMULATION, Measurement, experiment
from .harness.parts import part_area
from .harness.runs import LaunchRun, launch_runs, together

_TILE = "vault"
_VAULTS = 32


#: How windows of convolutions are loaded -> they share columns.
_WINDOWS = {"whole": False, "shared": True}


@experiment(presets=("vault",), tools=AMARANTH, minutes=5)
def column_reuse() -> Iterator[Measurement]:
    """What windows that share columns save, on the timing model.

    DRAM columns that a round of filters of VGG-16's convolutions reads, and its cycles, on a vault
    of four engines and of eight. And what the convolutions of an image read on 32 vaults, counted
    from these rounds.
    """
    for pes in (4, 8):
        config = with_engines(tile_preset(_TILE), pes)
        for windows, reuse in _WINDOWS.items():
            columns = cycles = 0
            for name, alike in ALIKE.items():
                job = layer_job(name, pes, reuse=reuse)
                run = together(launch_runs(job, config, name).values())
                reads, key = run.vaults["READS"], f"{name}_{pes}_engines_{windows}"
                yield Measurement(f"{key}_cycles", run.cycles, "cycles")
                yield Measurement(f"{key}_columns", reads, "columns")
                times = conv_rounds(convolution(name), pes) * alike
                columns += reads * times
                cycles += run.cycles * times
            key = f"vgg16_{pes}_engines_{windows}"
            read = _VAULTS * columns * COLUMN_BYTES
            yield Measurement(f"{key}_gb_counted", read / 1e9, "GB")
            yield Measurement(f"{key}_cycles_counted", cycles, "cycles")


def _reused(
    name: str, *, history: bool = False, buffer: bool = False, shared: bool = False
) -> LaunchRun:
    """A round of filters of one of :data:`ALIKE` on a vault.

    Parameters:
        history: engines have a load history of 32 entries in four ways, and the image is declared.
        buffer: the vault has a line buffer of 64 lines.
        shared: windows share columns.
    """
    config = with_engines(tile_preset(_TILE), _MANY)
    pe = with_history(config.pe, 32, 4) if history else config.pe
    config = replace(config, pe=pe, line_buffer=_LINES if buffer else 0)
    job = declared_job(name, _MANY) if history else layer_job(name, _MANY, reuse=shared)
    return together(launch_runs(job, config, name).values())


#: All combinations of history and line buffer, and the software that needs neither.
_WAYS: Mapping[str, Callable[[str], LaunchRun]] = {
    "neither": _reused,
    "history": partial(_reused, history=True),
    "buffer": partial(_reused, buffer=True),
    "history_and_buffer": partial(_reused, history=True, buffer=True),
    "shared": partial(_reused, shared=True),
    "shared_and_buffer": partial(_reused, shared=True, buffer=True),
}


@experiment(presets=("vault",), tools=AMARANTH, minutes=1)
def network_reuse() -> Iterator[Measurement]:
    """What reuse of data saves in VGG-16's convolutions on vaults of eight engines.

    On the timing model: cycles and DRAM columns of a round of filters of each; with a load history,
    a line buffer, both, windows that share columns, and these and a line buffer. And, counted from
    these rounds, the cycles of the convolutions of an image, what they read on 32 vaults, and its
    energy at 10 pJ a bit.
    """
    for word, way in _WAYS.items():
        columns = cycles = 0
        for name, alike in ALIKE.items():
            run = way(name)
            yield Measurement(f"{name}_{word}_cycles", run.cycles, "cycles")
            yield Measurement(f"{name}_{word}_columns", run.vaults["READS"], "columns")
            times = conv_rounds(convolution(name), _MANY) * alike
            columns += run.vaults["READS"] * times
            cycles += run.cycles * times
        read = _VAULTS * columns * COLUMN_BYTES
        yield Measurement(f"vgg16_{word}_cycles_counted", cycles, "cycles")
        yield Measurement(f"vgg16_{word}_gb_counted", read / 1e9, "GB")
        energy = read * 8 * DRAM_PJ_PER_BIT / 1e9
        yield Measurement(f"vgg16_{word}_mj_counted", energy, "mJ")


#: A round of filters of three convolutions, a time step of an LSTM, and an iteration of BP-M.
_KERNELS = ("conv1_1", "conv3_2", "conv5_1", "lstm", "bp_m")
#: Lines of a buffer in most runs; of one kernel, and whose area is measured; and that kernel.
_LINES = 64
_BUFFERS = (32, 64, 128)
_SIZED = "conv5_1"
#: Engines of most runs, and of those that need more than the bus gives; the latter's kernels.
_FEW, _MANY = 4, 8
_CROWDED = ("conv3_2", "conv5_1")


def buffered_job(name: str, config: VaultTileConfig, *, reuse: bool = False) -> KernelJob:
    """The job of a kernel of :func:`line_buffer`. ``reuse``: windows of a convolution share
    columns."""
    if name == "lstm":
        return ese_job(config.pes)
    if name == "bp_m":
        return belief_job(name, config)
    return layer_job(name, config.pes, reuse=reuse)


def buffered_runs() -> Iterator[tuple[str, str, VaultTileConfig, bool]]:
    """What :func:`line_buffer` runs: prefix of its figures, kernel, vault, whether windows share
    columns."""
    for name, pes, lines, reuse in _buffer_runs():
        prefix = f"{name}_{pes}_engines_{lines}_lines" + ("_shared" if reuse else "")
        config = replace(with_engines(tile_preset(_TILE), pes), line_buffer=lines)
        if name == "lstm":
            config = replace(config, pe=replace(config.pe, instructions=LOGISTIC_INSTRUCTIONS))
        yield prefix, name, config, reuse


def _buffer_runs() -> Iterator[tuple[str, int, int, bool]]:
    """Kernel, engines, lines, whether windows share columns."""
    for name in _KERNELS:
        yield from ((name, _FEW, lines, False) for lines in (0, _LINES))
    yield from ((_SIZED, _FEW, lines, False) for lines in _BUFFERS if lines != _LINES)
    yield from ((_SIZED, _FEW, lines, True) for lines in (0, _LINES))
    for name in _CROWDED:
        for reuse in (False, True):
            yield from ((name, _MANY, lines, reuse) for lines in (0, _LINES))


@experiment(presets=("vault", "vault-logistic"), tools=(*SIMULATION, "pyosys"), minutes=30)
def line_buffer() -> Iterator[Measurement]:
    """What a vault's line buffer saves, in Verilog: DRAM columns that kernels read, and cycles.

    Without and with 64 lines, on a vault of four engines; of conv5_1 for other sizes, and with
    windows that share columns; of two convolutions on eight engines, and how many times as fast as
    four engines without lines and with whole windows these are. And the area of the buffer: gate
    equivalents beside its memories, bits of these, and 7-series.
    """
    # Operations and cycles of four engines. A round of eight has more filters.
    plain: dict[str, tuple[int, int]] = {}
    for prefix, name, config, reuse in buffered_runs():
        pes, lines = config.pes, config.line_buffer
        job = buffered_job(name, config, reuse=reuse)
        run = together(launch_runs(job, config, name, on="rtl").values())
        yield Measurement(f"{prefix}_cycles", run.cycles, "cycles")
        yield Measurement(f"{prefix}_columns", run.vaults["READS"], "columns")
        if name in _CROWDED:
            work = job.operations
            if pes == _FEW and not lines and not reuse:
                plain[name] = work, run.cycles
            elif pes == _MANY:
                done, cycles = plain[name]
                times = work * cycles / (done * run.cycles)
                yield Measurement(f"{prefix}_times_four", times, "", more_is_better=True)
        for counter in LineCounter if lines else ():
            value = run.vaults[counter.name]
            yield Measurement(f"{prefix}_{counter.name.lower()}", value, "", tolerance=None)
    for lines in _BUFFERS:
        key = f"{lines}_lines"
        values = part_area(partial(_buffer, lines), "generic")
        yield Measurement(f"{key}_kge", values["logic_ge"] / 1000, "kGE", 0.01)
        yield Measurement(f"{key}_sram_bits", values["sram_bits"], "bits", 0.01)
        values = part_area(partial(_buffer, lines), "xc7")
        yield Measurement(f"{key}_luts", values["luts"], "luts", 0.01)
        yield Measurement(f"{key}_ffs", values["ffs"], "ffs", 0.01)


def _buffer(lines: int, sram: SramKind) -> LineBuffer:
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
