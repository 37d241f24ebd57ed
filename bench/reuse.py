"""What a vault's line buffer saves: layers of VGG-16, an LSTM and BP-M, every output exact."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product

from hdl.config import SramKind
from memory.line_buffer.layout import LineCounter
from memory.line_buffer.line_buffer import LineBuffer
from microkernels.runtime.job import KernelJob
from sim_tb.workloads.tiles import LAYERS, kernel_jobs, round_job, with_engines
from soc.generate.presets import tile_preset
from soc.tile.config import VaultTileConfig

from .harness.experiment import SIMULATION, Measurement, experiment
from .harness.parts import part_area
from .harness.runs import launch_runs, together

_TILE = "vault"


#: A round of filters of three convolutions, a time step of an LSTM, and an iteration of BP-M.
_KERNELS = ("conv1_1", "conv3_2", "conv5_1", "lstm", "bp_m")
#: Lines of a buffer in most runs; of one kernel, and whose area is measured; and that kernel.
_LINES = 64
_BUFFERS = (32, 64, 128)
_SIZED = "conv5_1"
#: Engines of most runs, and of those that need more than the bus gives; the latter's kernels.
_FEW, _MANY = 4, 8
_CROWDED = ("conv3_2", "conv5_1")


def buffered_job(
    name: str, config: VaultTileConfig, *, reuse: bool = False
) -> tuple[VaultTileConfig, KernelJob]:
    """The vault and the job of a kernel of :func:`line_buffer`. ``reuse``: windows of a convolution
    share columns."""
    if name in LAYERS:
        return config, round_job(name, config.pes, reuse=reuse)
    machine, (job,) = kernel_jobs(name, config)
    return machine, job


def buffered_runs() -> Iterator[tuple[str, str, VaultTileConfig, bool]]:
    """What :func:`line_buffer` runs: prefix of its figures, kernel, vault, whether windows share
    columns."""
    runs = (
        *((name, _FEW, lines, False) for name in _KERNELS for lines in (0, _LINES)),
        *((_SIZED, _FEW, lines, False) for lines in _BUFFERS if lines != _LINES),
        *((_SIZED, _FEW, lines, True) for lines in (0, _LINES)),
        *(
            (name, _MANY, lines, reuse)
            for name, reuse, lines in product(_CROWDED, (False, True), (0, _LINES))
        ),
    )
    for name, pes, lines, reuse in runs:
        prefix = f"{name}_{pes}_engines_{lines}_lines" + ("_shared" if reuse else "")
        config = replace(with_engines(tile_preset(_TILE), pes), line_buffer=lines)
        yield prefix, name, config, reuse


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
        machine, job = buffered_job(name, config, reuse=reuse)
        run = together(launch_runs(job, machine, name, on="rtl").values())
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
