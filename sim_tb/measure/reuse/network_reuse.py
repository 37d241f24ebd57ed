"""What reuse of data saves in all convolutions of a network: cycles and DRAM columns of a vault
whose engines have a load history, which has a line buffer, or whose windows share columns.

On the timing model; every output is compared with the golden model's.
"""

from dataclasses import dataclass, replace

from microkernels.runtime.job import KernelJob
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import launches_key, run_on
from sim_tb.measure.kernels import conv_rounds
from sim_tb.measure.vgg import CONVOLUTIONS
from sim_tb.runner.cache import Kept, fingerprint
from sim_tb.timed.library import sources
from soc.generate.generate import configuration_json
from soc.tile.config import VaultTileConfig

from .column_reuse import LayerReads, layer_job, with_engines
from .load_history import declared_job, with_history

__all__ = ["WAYS", "Way", "measure_way", "way_job", "way_vault"]

_ENTRIES, _ENTRY_WAYS, _LINES = 32, 4, 64


@dataclass(frozen=True, kw_only=True)
class Way:
    """How columns are used again.

    Attributes:
        history: engines have a load history of 32 entries in four ways. buffer: the vault has a
            line buffer of 64 lines. shared: windows share columns.
    """

    history: bool = False
    buffer: bool = False
    shared: bool = False


#: The square of history and line buffer, and the software that does without either.
WAYS = {
    "neither": Way(),
    "history": Way(history=True),
    "buffer": Way(buffer=True),
    "history_and_buffer": Way(history=True, buffer=True),
    "shared": Way(shared=True),
    "shared_and_buffer": Way(shared=True, buffer=True),
}


def way_vault(config: VaultTileConfig, pes: int, way: Way) -> VaultTileConfig:
    """``config`` with 4 or 8 engines and what ``way`` needs."""
    pe = with_history(config.pe, _ENTRIES, _ENTRY_WAYS) if way.history else config.pe
    lines = _LINES if way.buffer else 0
    return replace(with_engines(config, pes), pe=pe, line_buffer=lines)


def way_job(name: str, pes: int, way: Way) -> KernelJob:
    """One of :data:`sim_tb.measure.reuse.column_reuse.LAYERS`: the filters that ``pes`` engines
    take at once. For a history its image is declared."""
    if way.history:
        return declared_job(name, pes)
    return layer_job(name, pes, reuse=way.shared)


def measure_way(name: str, config: VaultTileConfig, pes: int, way: Way) -> LayerReads:
    """Run a :func:`way_job` on all engines of a vault. The result is cached on disk.

    Raises:
        CosimError: an output differs from the golden model's.
        support.native.CompilerError: the timing model can't be built.
    """
    machine, job = way_vault(config, pes, way), way_job(name, pes, way)

    def measure() -> dict[str, int]:
        outcome = run_on(job, machine, on="model")
        if not outcome.match:
            raise CosimError(f"{name}: outputs differ from the golden model's")
        return {"cycles": outcome.cycles, "columns": outcome.result.vaults[0]["READS"]}

    key = fingerprint(
        repr(sorted(configuration_json(machine).items())),
        launches_key(job),
        *(path.read_bytes() for path in sources()),
    )
    layer = next(layer for layer in CONVOLUTIONS if layer.name == name)
    return LayerReads(rounds=conv_rounds(layer, pes), **Kept("network_reuse").get(key, measure))
