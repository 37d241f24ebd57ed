"""What a load history saves: columns that convolutions ask memory for, and cycles, in Verilog.

Windows of a convolution are loaded whole, column by column of the kernel, as a plan that nobody
tuned does; the program declares its image, so that the history knows what is read-only. Every
output is compared with the golden model's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from microkernels.nn.conv_plan import best_depth, plan_conv
from microkernels.nn.jobs import DEFAULT_OUT_DEPTH, conv_layout
from microkernels.runtime.job import KernelJob
from microkernels.runtime.read_only import read_only_job
from pe.config import PeConfig
from pe.interface import HistoryCounter
from sim_tb.cosim.engine import CosimError, MemoryBehaviour
from sim_tb.cosim.kernels import launches_key, run_on
from sim_tb.dut.engine import configuration_verilog
from sim_tb.measure.kernels import conv_rounds
from sim_tb.measure.vgg import CONVOLUTIONS
from sim_tb.runner.cache import Kept, fingerprint
from soc.tile.config import VaultTileConfig

from .column_reuse import layer_job

__all__ = [
    "KERNELS",
    "EngineRun",
    "VaultRun",
    "declared_job",
    "measure_engine",
    "measure_vault",
    "with_history",
]

#: A round of filters of three convolutions.
KERNELS = ("conv1_1", "conv3_2", "conv5_1")
_LATENCY = 60


@dataclass(frozen=True, kw_only=True)
class EngineRun:
    """A kernel on one engine beside a memory with a latency of 60 cycles.

    Attributes:
        cycles: of the engine.
        history: its counters, by name of :class:`pe.interface.HistoryCounter`; 0 without one.
    """

    cycles: int
    history: Mapping[str, int]

    @property
    def share(self) -> float:
        """Columns of the declared image that the scratchpad gave, of all that were loaded."""
        hits = self.history["HISTORY_HITS"]
        return hits / (hits + self.history["WORKSPACE_COLUMNS"])


@dataclass(frozen=True, kw_only=True)
class VaultRun:
    """A kernel on a vault.

    Attributes:
        cycles: of the engine that ran longest.
        columns: of 32 bytes, read from the DRAM.
    """

    cycles: int
    columns: int


def with_history(config: PeConfig, entries: int, ways: int) -> PeConfig:
    """``config`` with the instruction that declares, and a history of ``entries`` (0: none)."""
    keys = config.instructions | {"set.ws"}
    return replace(config, instructions=keys, load_history=entries, load_history_ways=ways)


def declared_job(name: str, pes: int, *, sums_first: bool = False) -> KernelJob:
    """The whole windows of one of :data:`KERNELS` for ``pes`` engines, its image declared.
    ``sums_first``: as of :func:`microkernels.nn.conv_kernel.conv_program`."""
    layer = next(layer for layer in CONVOLUTIONS if layer.name == name)
    assert layer.conv is not None
    shape = replace(layer.conv, filters=layer.conv.filters // conv_rounds(layer, pes))
    out_depth = min(shape.filters, DEFAULT_OUT_DEPTH)
    plan = plan_conv(
        shape,
        depth=best_depth(shape, out_depth=out_depth),
        out_depth=out_depth,
        strips=layer.first,
    )
    layout = conv_layout(
        plan, base=0, channels=shape.filters, depth=out_depth, padding=1, sharers=pes
    )
    job = layer_job(name, pes, reuse=False, sums_first=sums_first)
    return read_only_job(job, 0, layout.source.end)


def measure_engine(job: KernelJob, config: PeConfig) -> EngineRun:
    """Run ``job`` on the Verilog of one engine. The result is cached on disk.

    Raises:
        CosimError: an output differs from the golden model's.
    """

    def measure() -> dict[str, object]:
        outcome = run_on(job, config, memory=MemoryBehaviour(latency=_LATENCY))
        if not outcome.match:
            raise CosimError(f"{job.name}: outputs differ from the golden model's")
        counters = outcome.result.engine.counters
        return {
            "cycles": outcome.cycles,
            "history": {item.name: counters.get(item.name, 0) for item in HistoryCounter},
        }

    key = fingerprint(configuration_verilog(config), launches_key(job))
    return EngineRun(**Kept("load_history").get(key, measure))


def measure_vault(job: KernelJob, config: VaultTileConfig) -> VaultRun:
    """Run ``job`` on the Verilog of a vault. The result is cached on disk.

    Raises:
        CosimError: an output differs from the golden model's.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """

    def measure() -> dict[str, object]:
        outcome = run_on(job, config)
        if not outcome.match:
            raise CosimError(f"{job.name}: outputs differ from the golden model's")
        return {"cycles": outcome.cycles, "columns": outcome.result.vaults[0]["READS"]}

    key = fingerprint(configuration_verilog(config), launches_key(job))
    return VaultRun(**Kept("load_history").get(key, measure))
