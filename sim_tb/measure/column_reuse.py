"""What windows that share columns save: DRAM columns that convolutions read, and cycles.

Layers of VGG-16 on a vault of four engines and of eight, and the whole network on a chip, on the
timing model; every output is compared with the golden model's.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import numpy as np

from isa.support.cache import build_folder
from microkernels.common.fixed_point import Elements
from microkernels.data.networks import photographs, usual_network_weights
from microkernels.networks.jobs import NetworkJob, network_job
from microkernels.networks.vgg16 import vgg16
from microkernels.nn.jobs import conv_job
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.checkpoint import Checkpoint
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import chip_engines, cosim_chip, cosim_vault, job_key, launches_key
from sim_tb.runner.cache import Kept, fingerprint
from sim_tb.timed.library import sources
from soc.chip.config import ChipConfig
from soc.generate.generate import configuration_json
from soc.tile.config import VaultTileConfig

from .kernels import conv_rounds
from .vgg import CONVOLUTIONS

__all__ = [
    "LAYERS",
    "LayerReads",
    "NetworkReads",
    "layer_job",
    "measure_layer",
    "measure_vgg16",
    "vgg16_job",
    "with_engines",
]

#: Convolutions whose tiles differ.
LAYERS = (
    "conv1_1",
    "conv1_2",
    "conv2_1",
    "conv2_2",
    "conv3_1",
    "conv3_2",
    "conv4_1",
    "conv4_2",
    "conv5_1",
)
_TAG_BITS = {4: 9, 8: 10}
_FRACTION = 10
_SEED = 1


@dataclass(frozen=True, kw_only=True)
class LayerReads:
    """A round of filters of a layer on a vault.

    Attributes:
        cycles: of the engine that ran longest. columns: of 32 bytes, read from the DRAM.
    """

    cycles: int
    columns: int


@dataclass(frozen=True, kw_only=True)
class NetworkReads:
    """VGG-16 on a chip, one image.

    Attributes:
        cycles: of all launches, of the engine that ran longest in each.
        columns: of 32 bytes, read from the DRAM of all vaults in all launches.
        convolutions: likewise, in the launches that compute convolutions.
    """

    cycles: int
    columns: int
    convolutions: int


def with_engines(config: VaultTileConfig, pes: int) -> VaultTileConfig:
    """``config`` with 4 or 8 engines, and tags for their requests."""
    return replace(config, pes=pes, vault=replace(config.vault, tag_bits=_TAG_BITS[pes]))


def _model() -> list[bytes]:
    return [path.read_bytes() for path in sources()]


def layer_job(name: str, pes: int, *, reuse: bool) -> KernelJob:
    """One of :data:`LAYERS`: the filters that ``pes`` engines take at once, with seeded data.
    ``reuse``: windows share columns."""
    layer = next(layer for layer in CONVOLUTIONS if layer.name == name)
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
    )


def measure_layer(name: str, config: VaultTileConfig, *, reuse: bool) -> LayerReads:
    """Run a :func:`layer_job` on all engines of a vault. The result is cached on disk.

    Raises:
        CosimError: an output differs from the golden model's.
        isa.support.native.CompilerError: the timing model can't be built.
    """
    job = layer_job(name, config.pes, reuse=reuse)

    def measure() -> dict[str, int]:
        outcome = cosim_vault(job, config, on="model")
        if not outcome.match:
            raise CosimError(f"{name}: outputs differ from the golden model's")
        columns = outcome.result.counters["READS"]
        return asdict(LayerReads(cycles=outcome.cycles, columns=columns))

    machine = repr(sorted(configuration_json(config).items()))
    key = fingerprint(machine, job_key(job), *_model())
    return LayerReads(**Kept("column_reuse").get(key, measure))


def vgg16_job(config: ChipConfig, *, reuse: bool) -> NetworkJob:
    """VGG-16 on all engines of a chip, one photograph, seeded weights. ``reuse``: windows share
    columns.

    Raises:
        KernelError: the network does not fit the chip.
    """
    network = vgg16()
    return network_job(
        network,
        usual_network_weights(network),
        photographs(network.input),
        engines=chip_engines(config),
        reuse=reuse,
    )


def measure_vgg16(
    config: ChipConfig, *, reuse: bool, progress: Callable[[str], None] | None = None
) -> NetworkReads:
    """Run a :func:`vgg16_job`. The result is cached on disk, and an interrupted run goes on.

    Parameters:
        config, reuse: as of :func:`vgg16_job`. progress: called with the name of each launch.

    Raises:
        CosimError: an activation differs from the golden model's.
        KernelError: the network does not fit the chip.
        isa.support.native.CompilerError: the timing model can't be built.
    """
    job = vgg16_job(config, reuse=reuse)
    machine = repr(sorted(configuration_json(config).items()))
    key = fingerprint(machine, launches_key(job.job), *_model())
    checkpoint = Checkpoint(build_folder() / "checkpoints" / f"column_reuse_{reuse}", key)

    def measure() -> dict[str, int]:
        outcome = cosim_chip(
            job.job,
            config,
            on="model",
            preload=True,
            checkpoint=checkpoint,
            begins=progress,
        )
        if not outcome.match:
            raise CosimError("vgg16: activations differ from the golden model's")
        columns = {
            launch: sum(vault["READS"] for vault in result.vaults)
            for launch, result in outcome.results.items()
        }
        steps = {launch: job.step_of(launch) for launch in columns}
        return asdict(
            NetworkReads(
                cycles=sum(result.program_cycles for result in outcome.results.values()),
                columns=sum(columns.values()),
                convolutions=sum(
                    read
                    for launch, read in columns.items()
                    if steps[launch][0].startswith("conv") and not steps[launch][1]
                ),
            )
        )

    found = Kept("column_reuse").get(key, measure)
    checkpoint.remove()
    return NetworkReads(**found)
