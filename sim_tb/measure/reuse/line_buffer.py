"""What a vault's line buffer saves: DRAM columns that kernels read, and cycles, in Verilog."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from memory.line_buffer.layout import LineCounter
from microkernels.runtime.job import KernelJob
from pe.config import SPECIAL_INSTRUCTIONS
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import launches_key, run_on
from sim_tb.dut.engine import configuration_verilog
from sim_tb.measure.belief import belief_job
from sim_tb.measure.lstm_ese import ese_job
from sim_tb.runner.cache import Kept, fingerprint
from soc.tile.config import VaultTileConfig

from .column_reuse import layer_job

__all__ = ["KERNELS", "BufferedRun", "buffered", "buffered_job", "measure_buffered"]

#: A round of filters of three convolutions, a time step of an LSTM, and an iteration of BP-M.
KERNELS = ("conv1_1", "conv3_2", "conv5_1", "lstm", "bp_m")


@dataclass(frozen=True, kw_only=True)
class BufferedRun:
    """A kernel on a vault.

    Attributes:
        cycles: of the engine that ran longest.
        columns: of 32 bytes, read from the DRAM.
        lines: counters of the line buffer, by name; empty without one.
    """

    cycles: int
    columns: int
    lines: Mapping[str, int]


def buffered(config: VaultTileConfig, name: str, lines: int) -> VaultTileConfig:
    """``config`` with a line buffer of ``lines``, and with the engines that kernel ``name``
    needs."""
    special = SPECIAL_INSTRUCTIONS if name == "lstm" else config.pe.instructions
    return replace(config, line_buffer=lines, pe=replace(config.pe, instructions=special))


def buffered_job(name: str, config: VaultTileConfig, *, reuse: bool = False) -> KernelJob:
    """The job of one of :data:`KERNELS`. ``reuse``: windows of a convolution share columns."""
    if name == "lstm":
        return ese_job(config.pes)
    if name == "bp_m":
        return belief_job(name, config)
    return layer_job(name, config.pes, reuse=reuse)


def measure_buffered(
    name: str, config: VaultTileConfig, lines: int, *, reuse: bool = False
) -> BufferedRun:
    """Run one of :data:`KERNELS` on the Verilog of a vault with a line buffer of ``lines`` (0: it
    has none). The result is cached on disk.

    Raises:
        CosimError: an output differs from the golden model's.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    machine = buffered(config, name, lines)
    job = buffered_job(name, machine, reuse=reuse)

    def measure() -> dict[str, object]:
        outcome = run_on(job, machine)
        if not outcome.match:
            raise CosimError(f"{name}: outputs differ from the golden model's")
        vaults = [result.vaults[0] for result in outcome.results.values()]
        columns = sum(vault["READS"] for vault in vaults)
        counted = {
            item.name: sum(vault[item.name] for vault in vaults)
            for item in (LineCounter if lines else ())
        }
        return {"cycles": outcome.cycles, "columns": columns, "lines": counted}

    key = fingerprint(configuration_verilog(machine), launches_key(job))
    return BufferedRun(**Kept("line_buffer").get(key, measure))
