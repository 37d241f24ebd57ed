"""One vault's part of kernels: belief propagation, layers of VGG-16, the LSTM of ESE.

VGG-16 runs on 32 vaults in independent tiles, one per vault (thesis 6.2, 6.3). Maps are divided by
position into tiles of at least 98 pixels. In the last two groups of convolutions, channels are
divided too: each vault computes partial sums over its channels, which a separate step completes and
pools. The first three groups are pooled in a separate step. Fully connected layers use a grid of
vaults, 8 across the inputs and 4 across the outputs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from microkernels.bp.golden import coarse_problem
from microkernels.bp.jobs import bp_between_job, bp_levels_job
from microkernels.bp.problem import BpProblem
from microkernels.common.fixed_point import Elements, to_fixed
from microkernels.data.stereo import motorcycle
from microkernels.nn.jobs import (
    conv_job,
    conv_layout,
    dense_job,
    lstm_job,
    pool_job,
)
from microkernels.nn.lstm_shape import LstmShape, LstmState, usual_weights
from microkernels.nn.window_shape import ConvShape, PoolShape
from microkernels.runtime.job import KernelJob
from microkernels.runtime.read_only import read_only_job
from microkernels.runtime.ring import ChipEngines
from pe.config import LOGISTIC_INSTRUCTIONS, PeConfig
from soc.tile.config import VaultTileConfig

#: Vaults across the inputs and across the outputs of a fully connected layer.
_ACROSS_INPUTS = 8

_ACROSS_OUTPUTS = 4

#: Pixels of zeros, or of neighbouring tiles, around a tile.
_HALO = 2


@dataclass(frozen=True, kw_only=True)
class TileLayer:
    """A layer, or the pooling step after one.

    Attributes:
        name: as in thesis Table 7.3.
        conv, pool, dense: steps of a vault, one after the other, the last with its inputs and
            outputs; None: no such step.
        first: the image comes from the host, in strips.
        last: without ReLU.
    """

    name: str
    conv: ConvShape | None = None
    pool: PoolShape | None = None
    dense: tuple[int, int] | None = None
    first: bool = False
    last: bool = False

    @property
    def segments(self) -> int:
        """Number of vaults that compute partial sums of an output."""
        if self.dense is not None:
            return _ACROSS_INPUTS
        return self.pool.segments if self.pool is not None else 1


def _conv(
    name: str,
    tile: tuple[int, int],
    channels: int,
    filters: int,
    pool: PoolShape | None = None,
    *,
    first: bool = False,
) -> TileLayer:
    """A convolution; ``tile``: output pixels across and down."""
    shape = ConvShape(
        width=tile[0] + _HALO, height=tile[1] + _HALO, channels=channels, filters=filters
    )
    return TileLayer(name=name, conv=shape, pool=pool, first=first)


def _complete(segments: int, channels: int, *, pooled: bool = False) -> PoolShape:
    """The step that completes partial sums of a tile of 14 x 14 pixels."""
    window = 2 if pooled else 1
    return PoolShape(
        width=14, height=14, channels=channels, kernel=window, stride=window, segments=segments
    )


def _pool(name: str, tile: tuple[int, int], channels: int) -> TileLayer:
    """Pooling of 2 x 2 pixels."""
    return TileLayer(name=name, pool=PoolShape(width=tile[0], height=tile[1], channels=channels))


def _dense(name: str, inputs: int, outputs: int, *, last: bool = False) -> TileLayer:
    part = (inputs // _ACROSS_INPUTS, outputs // _ACROSS_OUTPUTS)
    return TileLayer(name=name, dense=part, last=last)


#: Name -> layer: convolutions, with the completion of their partial sums, and pooling for conv4_3
#: and conv5_3; pooling as a separate step, which the thesis counts with the convolutions; fully
#: connected layers.
LAYERS: Mapping[str, TileLayer] = {
    layer.name: layer
    for layer in (
        _conv("conv1_1", (56, 28), 3, 64, first=True),
        _conv("conv1_2", (56, 28), 64, 64),
        _conv("conv2_1", (28, 14), 64, 128),
        _conv("conv2_2", (28, 14), 128, 128),
        _conv("conv3_1", (14, 7), 128, 256),
        _conv("conv3_2", (14, 7), 256, 256),
        _conv("conv3_3", (14, 7), 256, 256),
        _conv("conv4_1", (14, 7), 64, 512, _complete(4, 64)),
        _conv("conv4_2", (14, 7), 128, 512, _complete(4, 64)),
        _conv("conv4_3", (14, 7), 128, 512, _complete(4, 64, pooled=True)),
        _conv("conv5_1", (14, 14), 64, 128, _complete(8, 16)),
        _conv("conv5_2", (14, 14), 64, 128, _complete(8, 16)),
        _conv("conv5_3", (14, 14), 64, 128, _complete(8, 16, pooled=True)),
        _pool("pool1", (56, 28), 64),
        _pool("pool2", (28, 14), 128),
        _pool("pool3", (14, 14), 128),
        _dense("fc6", 25088, 4096),
        _dense("fc7", 4096, 4096),
        _dense("fc8", 4096, 1000, last=True),
    )
}

_TILE = (60, 34)

_LABELS = 16

#: Construct and copy run on one vault of a ring with this many per side.
_SIDE = 2

#: Iterations of the launch; five on the quarter-size image, as in the thesis (7.2.1).
ITERATIONS = {"bp_m": 1, "bp_coarse": 5}

_SEED = 1

#: Kernel of belief propagation -> its launch in hierarchical BP-M.
BELIEF = {"bp_m": "fine", "bp_construct": "construct", "bp_coarse": "coarse", "bp_copy": "copy"}


def belief_job(name: str, config: VaultTileConfig) -> KernelJob:
    """A vault's job for a kernel of :data:`BELIEF`, on tiles of the Motorcycle pair: an iteration
    on one tile, or on its 30 x 17 blocks of 2 x 2 pixels; construct and copy on the four tiles of
    a ring of 2 x 2 vaults."""
    problem = belief_problem(name)
    side = 1 if name in ITERATIONS else _SIDE
    engines = ChipEngines(
        columns=side,
        rows=side,
        address_bits=config.vault.address_bits,
        pes=config.pes,
        scratchpad_bytes=config.pe.scratchpad_bytes,
        instruction_words=config.pe.instruction_words,
    )
    if name in ITERATIONS:
        coarse, fine = (0, 1) if name == "bp_m" else (1, 0)
        times = ITERATIONS[name]
        return bp_levels_job(problem, coarse * times, fine * times, engines=engines)
    blocks = coarse_problem(problem)
    drawn = np.random.default_rng(_SEED).integers(
        -1000, 1000, blocks.no_messages().shape, blocks.data_costs.dtype
    )
    return bp_between_job(problem, drawn, engines=engines)


def belief_problem(name: str) -> BpProblem:
    """The pixels of all vaults of :func:`belief_job`."""
    side = 1 if name in ITERATIONS else _SIDE**2
    return motorcycle(side * _TILE[0], side * _TILE[1], _LABELS).problem


#: A time step of the LSTM of ESE, batch 32.
LSTM = "lstm"

#: Rounds of a convolution to run.
ROUNDS = 2

_FRACTION = 10


def conv_rounds(layer: TileLayer, pes: int) -> int:
    """Number of filter groups per PE, of ``pes``; 1 unless the layer is a convolution."""
    if layer.conv is None:
        return 1
    return max(1, conv_layout(layer.conv, strips=layer.first).plan.groups // pes)


def _values(*shape: int, rng: np.random.Generator, limit: int = 1000) -> Elements:
    return rng.integers(-limit, limit, shape, np.int16, endpoint=True)


def _some_filters(layer: TileLayer, rounds: int | None, pes: int) -> ConvShape:
    """A convolution with the filters of ``rounds`` rounds; None: all."""
    assert layer.conv is not None
    every = conv_rounds(layer, pes)
    run = every if rounds is None else min(rounds, every)
    return replace(layer.conv, filters=layer.conv.filters * run // every)


def _conv_job(
    layer: TileLayer, shape: ConvShape, pes: int, rng: np.random.Generator, **options: Any
) -> KernelJob:
    size = (shape.filters, shape.kernel, shape.kernel, shape.channels)
    return conv_job(
        shape,
        _values(shape.height, shape.width, shape.channels, rng=rng),
        _values(*size, rng=rng, limit=100),
        _values(shape.filters, rng=rng),
        fraction=_FRACTION,
        out_padding=1,
        strips=layer.first,
        sharers=pes,
        **options,
    )


def layer_jobs(
    layer: TileLayer, *, batch: int = 1, rounds: int | None = None, pes: int = 4
) -> list[KernelJob]:
    """A vault's jobs for a layer, with random data.

    Parameters:
        batch: vectors of a fully connected layer; other layers take one image.
        rounds: of a convolution; None: all.
        pes: engines of the vault.
    """
    rng = np.random.default_rng(_SEED)
    values = partial(_values, rng=rng)
    jobs = []
    if layer.conv is not None:
        shape = _some_filters(layer, rounds, pes)
        jobs.append(_conv_job(layer, shape, pes, rng, relu=layer.segments == 1))
    if layer.pool is not None:
        pooled = layer.pool
        completes = layer.conv is not None
        job = pool_job(
            pooled,
            values(pooled.segments, pooled.height, pooled.width, pooled.channels),
            values(pooled.channels) if completes else None,
            relu=completes,
            out_padding=1,
            sharers=pes,
        )
        jobs.append(job)
    if layer.dense is not None:
        inputs, units = layer.dense
        job = dense_job(
            values(batch, inputs),
            values(units, inputs, limit=100),
            values(units),
            fraction=_FRACTION,
            relu=not layer.last,
            others=values(layer.segments - 1, batch, units),
            sharers=pes,
        )
        jobs.append(job)
    return jobs


#: The LSTM of ESE on 32 vaults (thesis 6.4, 7.2.2).
_VAULTS = 32
ESE = LstmShape(inputs=153, cells=1024, outputs=512, batch=32)

#: A vault in the middle, whose lists of chunks wrap around.
_VAULT = 5

_LSTM_FRACTION = 11


def ese_job(sharers: int, *, batch: int = ESE.batch) -> KernelJob:
    """A vault's part of a time step, with random weights, inputs and state of usual magnitude.

    Parameters:
        sharers: engines of the vault, at least 1.
        batch: number of sequences that they share.

    Raises:
        KernelError: the batch needs more engines.
    """
    rng = np.random.default_rng(_SEED)

    def values(scale: float, *size: int) -> Elements:
        return to_fixed(rng.normal(0, scale, size), _LSTM_FRACTION)

    shape = replace(ESE, batch=batch)
    weights = usual_weights(shape, values)
    state = LstmState(c=values(0.7, batch, shape.cells), y=values(0.5, batch, shape.outputs))
    return lstm_job(
        shape,
        weights,
        values(1.0, 1, batch, shape.inputs),
        state,
        fraction=_LSTM_FRACTION,
        engines=ChipEngines(pes=sharers),
        vaults=_VAULTS,
        vault=_VAULT,
    )


def kernel_jobs(
    name: str, config: VaultTileConfig, *, batch: int = 1, rounds: int | None = ROUNDS
) -> tuple[VaultTileConfig, list[KernelJob]]:
    """A kernel of :data:`BELIEF`, :data:`LAYERS` or :data:`LSTM`: the vault, whose engines get the
    optional instructions for the last, and its consecutive jobs; ``batch`` and ``rounds`` as for
    :func:`layer_jobs`.

    Raises:
        KeyError: another name.
    """
    if name in BELIEF:
        return config, [belief_job(name, config)]
    if name == LSTM:
        pe = replace(config.pe, instructions=LOGISTIC_INSTRUCTIONS)
        return replace(config, pe=pe), [ese_job(config.pes)]
    return config, layer_jobs(LAYERS[name], batch=batch, rounds=rounds, pes=config.pes)


_TAG_BITS = {4: 9, 8: 10}


def with_engines(config: VaultTileConfig, pes: int) -> VaultTileConfig:
    """``config`` with 4 or 8 engines and enough tags for their requests."""
    return replace(config, pes=pes, vault=replace(config.vault, tag_bits=_TAG_BITS[pes]))


def with_history(config: PeConfig, entries: int, ways: int) -> PeConfig:
    """``config`` with ``set.ws`` and a load history of ``entries`` (0: none)."""
    keys = config.instructions | {"set.ws"}
    return replace(config, instructions=keys, load_history=entries, load_history_ways=ways)


def round_job(name: str, pes: int, *, reuse: bool) -> KernelJob:
    """A convolution of VGG-16 with the filters of one round on ``pes`` engines, with ReLU, and
    seeded data. ``reuse``: windows share columns."""
    layer, rng = LAYERS[name], np.random.default_rng(_SEED)
    return _conv_job(layer, _some_filters(layer, 1, pes), pes, rng, reuse=reuse)


def declared_job(name: str, pes: int) -> KernelJob:
    """A :func:`round_job` with whole windows for ``pes`` engines, and its image declared."""
    layer = LAYERS[name]
    shape = _some_filters(layer, 1, pes)
    layout = conv_layout(shape, out_padding=1, strips=layer.first, sharers=pes)
    return read_only_job(round_job(name, pes, reuse=False), 0, layout.source.end)
