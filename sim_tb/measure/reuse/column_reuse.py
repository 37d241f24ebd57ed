"""What windows that share columns save: DRAM columns that convolutions read, and cycles.

Layers of VGG-16 on a vault of four engines and of eight, on the timing model; every output is
compared with the golden model's.
"""

from dataclasses import dataclass, replace

import numpy as np

from microkernels.common.fixed_point import Elements
from microkernels.nn.jobs import conv_job
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import job_key, run_on
from sim_tb.measure.kernels import conv_rounds
from sim_tb.measure.vgg import CONVOLUTIONS, Layer
from sim_tb.runner.cache import Kept, fingerprint
from sim_tb.timed.library import sources
from soc.generate.generate import configuration_json
from soc.tile.config import VaultTileConfig

__all__ = ["LAYERS", "LayerReads", "layer_job", "measure_layer", "with_engines"]

#: Convolutions whose tiles differ, and how many of VGG-16 are like each.
LAYERS = {
    "conv1_1": 1,
    "conv1_2": 1,
    "conv2_1": 1,
    "conv2_2": 1,
    "conv3_1": 1,
    "conv3_2": 2,
    "conv4_1": 1,
    "conv4_2": 2,
    "conv5_1": 3,
}
_TAG_BITS = {4: 9, 8: 10}
_FRACTION = 10
_SEED = 1


@dataclass(frozen=True, kw_only=True)
class LayerReads:
    """A round of filters of a layer on a vault.

    Attributes:
        cycles: of the engine that ran longest. columns: of 32 bytes, read from the DRAM.
        rounds: of the whole tile.
    """

    cycles: int
    columns: int
    rounds: int


def with_engines(config: VaultTileConfig, pes: int) -> VaultTileConfig:
    """``config`` with 4 or 8 engines, and tags for their requests."""
    return replace(config, pes=pes, vault=replace(config.vault, tag_bits=_TAG_BITS[pes]))


def _layer(name: str) -> Layer:
    return next(layer for layer in CONVOLUTIONS if layer.name == name)


def layer_job(name: str, pes: int, *, reuse: bool, sums_first: bool = False) -> KernelJob:
    """One of :data:`LAYERS`: the filters that ``pes`` engines take at once, with seeded data.
    ``reuse``: windows share columns. ``sums_first``: as of
    :func:`microkernels.nn.conv_kernel.conv_program`."""
    layer = _layer(name)
    assert layer.conv is not None
    rounds = conv_rounds(layer, pes)
    shape = replace(layer.conv, filters=layer.conv.filters // rounds)
    rng = np.random.default_rng(_SEED)

    def values(*size: int, limit: int = 1000) -> Elements:
        return rng.integers(-limit, limit, size, np.int16, endpoint=True)

    return conv_job(
        shape,
        values(shape.height, shape.width, shape.channels),
        values(shape.filters, shape.kernel, shape.kernel, shape.channels, limit=100),
        values(shape.filters),
        fraction=_FRACTION,
        out_padding=1,
        strips=layer.first,
        sharers=pes,
        reuse=reuse,
        sums_first=sums_first,
    )


def measure_layer(name: str, config: VaultTileConfig, *, reuse: bool) -> LayerReads:
    """Run a :func:`layer_job` on all engines of a vault. The result is cached on disk.

    Raises:
        CosimError: an output differs from the golden model's.
        support.native.CompilerError: the timing model can't be built.
    """
    job = layer_job(name, config.pes, reuse=reuse)

    def measure() -> dict[str, int]:
        outcome = run_on(job, config, on="model")
        if not outcome.match:
            raise CosimError(f"{name}: outputs differ from the golden model's")
        columns = outcome.result.vaults[0]["READS"]
        return {"cycles": outcome.cycles, "columns": columns}

    machine = repr(sorted(configuration_json(config).items()))
    key = fingerprint(machine, job_key(job), *(path.read_bytes() for path in sources()))
    rounds = conv_rounds(_layer(name), config.pes)
    return LayerReads(rounds=rounds, **Kept("column_reuse").get(key, measure))
