"""What a vault's line buffer saves, and its area."""

from collections.abc import Iterator

import sim_tb.measure.line_buffer
from hdl.config import SramKind
from hdl.emission import emit
from memory.line_buffer.line_buffer import LineBuffer
from sim_tb.dut.tile import tile_design
from sim_tb.measure.column_reuse import with_engines
from sim_tb.measure.line_buffer import KERNELS, buffered, buffered_job, measure_buffered
from soc.generate.presets import tile_preset
from synth.physical.area import measure_unit
from synth.physical.targets import find_target
from synth.physical.units import Unit

from . import fingerprints
from .measurement import Measurement

__all__ = ["line_buffer", "made_of_line_buffer"]

_TILE = "vault"
#: Lines of the buffer of most runs, and of one kernel.
_LINES = 64
_SIZES = (32, 64, 128)
_SIZED = "conv5_1"


def line_buffer() -> Iterator[Measurement]:
    """What a vault's line buffer saves, in Verilog: DRAM columns that kernels read and cycles,
    without and with 64 lines, on a vault of four engines; of conv5_1 for other sizes, and with
    windows that share columns. Every output is compared with the golden model's. And the area of
    the buffer: gate equivalents beside its memories, bits of these, and 7-series."""
    for name, pes, lines, reuse in _runs():
        run = measure_buffered(name, with_engines(tile_preset(_TILE), pes), lines, reuse=reuse)
        prefix = f"{name}_{pes}_engines_{lines}_lines" + ("_shared" if reuse else "")
        yield Measurement(f"{prefix}_cycles", run.cycles, "cycles")
        yield Measurement(f"{prefix}_columns", run.columns, "columns")
        for counter, value in run.lines.items():
            yield Measurement(f"{prefix}_{counter.lower()}", value, "", tolerance=None)
    for lines in _SIZES:
        for target in ("generic", "xc7"):
            sram = find_target(target).sram
            shape = emit(_part(lines, "macro"), "part")
            emission = emit(_part(lines, sram), "part")
            unit = Unit("line_buffer", ((emission.top, 1),))
            values = measure_unit(unit, find_target(target), emission, shape).values
            if target == "generic":
                yield Measurement(f"{lines}_lines_kge", values["logic_ge"] / 1000, "kGE", 0.01)
                yield Measurement(f"{lines}_lines_sram_bits", values["sram_bits"], "bits", 0.01)
            else:
                yield Measurement(f"{lines}_lines_luts", values["luts"], "luts", 0.01)
                yield Measurement(f"{lines}_lines_ffs", values["ffs"], "ffs", 0.01)


def _runs() -> Iterator[tuple[str, int, int, bool]]:
    """Kernel, engines, lines, whether windows share columns."""
    for name in KERNELS:
        yield from ((name, 4, lines, False) for lines in (0, _LINES))
    yield from ((_SIZED, 4, lines, False) for lines in _SIZES if lines != _LINES)
    yield from ((_SIZED, 4, lines, True) for lines in (0, _LINES))


def _part(lines: int, sram: SramKind) -> LineBuffer:
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
    for name, pes, lines, reuse in _runs():
        config = buffered(with_engines(tile_preset(_TILE), pes), name, lines)
        found |= fingerprints.simulator(
            f"{pes} engines, {lines} lines, {name}", tile_design(config)
        )
        jobs.append(buffered_job(name, config, reuse=reuse))
    for target in ("generic", "xc7"):
        found[f"mapping for {target}"] = fingerprints.mapping(find_target(target))
        for lines in _SIZES:
            part = _part(lines, find_target(target).sram)
            found[f"Verilog of {lines} lines for {target}"] = fingerprints.component(part)
    return {
        **found,
        "programs": fingerprints.programs(
            launch.program for job in jobs for launch in job.launches
        ),
        "what is measured": fingerprints.code(sim_tb.measure.line_buffer),
    }
