"""VGG-16 on 32 vaults: its layers in independent tiles, one a vault (thesis 6.2, 6.3).

Maps are cut by position as far as that leaves tiles of at least 98 pixels. The channels of the last
two groups of convolutions are cut too: each vault makes partial sums of its channels, which are
completed, and pooled, in a step of their own. The first three groups are pooled in a step of their
own. Fully connected layers lie on a grid of vaults, 8 across the inputs and 4 across the outputs.
"""

from dataclasses import dataclass

from microkernels.nn.conv_shape import ConvShape
from microkernels.nn.dense_plan import DenseShape
from microkernels.nn.pool_shape import PoolShape

__all__ = ["CONVOLUTIONS", "FULLY_CONNECTED", "LAYERS", "POOLS", "Layer"]

#: Vaults across the inputs and across the outputs of a fully connected layer.
_ACROSS_INPUTS = 8
_ACROSS_OUTPUTS = 4
#: Pixels of zeros, or of neighbouring tiles, around a tile.
_HALO = 2


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer, or the step of pooling after one.

    Attributes:
        name: as in thesis Table 7.3.
        limit_ms: of the datapath or of the memory, batch 1.
        thesis_ms: results of the thesis's simulator for batch 1 and 3; empty without a figure.
        conv, pool, dense: steps of a vault, one after the other; None: it does not do this step.
        first: the image comes from the host, in strips.
        last: without ReLU.
    """

    name: str
    limit_ms: float
    thesis_ms: tuple[float, ...] = ()
    conv: ConvShape | None = None
    pool: PoolShape | None = None
    dense: DenseShape | None = None
    first: bool = False
    last: bool = False

    @property
    def segments(self) -> int:
        """Vaults that make partial sums of one output."""
        if self.dense is not None:
            return _ACROSS_INPUTS
        return self.pool.segments if self.pool is not None else 1


#: Products a second, and bytes a second, of the thesis's chip.
_MACS_PER_MS = 640e6
_BYTES_PER_MS = 320e6
_VAULTS = 32


def _conv(
    name: str,
    thesis_ms: tuple[float, float],
    tile: tuple[int, int],
    channels: int,
    filters: int,
    pool: PoolShape | None = None,
    *,
    first: bool = False,
) -> Layer:
    """A convolution whose tiles have this many output pixels across and down."""
    shape = ConvShape(
        width=tile[0] + _HALO, height=tile[1] + _HALO, channels=channels, filters=filters
    )
    return Layer(
        name=name,
        limit_ms=shape.macs * _VAULTS / _MACS_PER_MS,
        thesis_ms=thesis_ms,
        conv=shape,
        pool=pool,
        first=first,
    )


def _complete(segments: int, channels: int, *, pooled: bool = False) -> PoolShape:
    """Completion of partial sums of a tile of 14 x 14 pixels."""
    window = 2 if pooled else 1
    return PoolShape(
        width=14, height=14, channels=channels, window=window, stride=window, segments=segments
    )


def _pool(name: str, tile: tuple[int, int], channels: int) -> Layer:
    """Pooling of 2 x 2 pixels; the memory's limit."""
    shape = PoolShape(width=tile[0], height=tile[1], channels=channels)
    elements = shape.width * shape.height * channels * 5 // 4
    return Layer(name=name, limit_ms=elements * 2 * _VAULTS / _BYTES_PER_MS, pool=shape)


def _dense(
    name: str,
    thesis_ms: tuple[float, float],
    limit_ms: float,
    inputs: int,
    outputs: int,
    *,
    last: bool = False,
) -> Layer:
    shape = DenseShape(inputs=inputs // _ACROSS_INPUTS, outputs=outputs // _ACROSS_OUTPUTS)
    return Layer(name=name, limit_ms=limit_ms, thesis_ms=thesis_ms, dense=shape, last=last)


#: Convolutions, with the completion of their partial sums, and for conv4_3 and conv5_3 pooling.
CONVOLUTIONS: tuple[Layer, ...] = (
    _conv("conv1_1", (0.319, 0.954), (56, 28), 3, 64, first=True),
    _conv("conv1_2", (3.325, 9.949), (56, 28), 64, 64),
    _conv("conv2_1", (2.292, 6.861), (28, 14), 64, 128),
    _conv("conv2_2", (3.343, 9.992), (28, 14), 128, 128),
    _conv("conv3_1", (1.757, 5.211), (14, 7), 128, 256),
    _conv("conv3_2", (3.356, 10.015), (14, 7), 256, 256),
    _conv("conv3_3", (3.364, 10.038), (14, 7), 256, 256),
    _conv("conv4_1", (1.794, 5.253), (14, 7), 64, 512, _complete(4, 64)),
    _conv("conv4_2", (3.397, 10.069), (14, 7), 128, 512, _complete(4, 64)),
    _conv("conv4_3", (3.401, 10.083), (14, 7), 128, 512, _complete(4, 64, pooled=True)),
    _conv("conv5_1", (1.502, 4.352), (14, 14), 64, 128, _complete(8, 16)),
    _conv("conv5_2", (1.502, 4.352), (14, 14), 64, 128, _complete(8, 16)),
    _conv("conv5_3", (1.504, 4.359), (14, 14), 64, 128, _complete(8, 16, pooled=True)),
)
#: Pooling in a step of its own; the thesis counts it with the convolutions.
POOLS: tuple[Layer, ...] = (
    _pool("pool1", (56, 28), 64),
    _pool("pool2", (28, 14), 128),
    _pool("pool3", (14, 14), 128),
)
FULLY_CONNECTED: tuple[Layer, ...] = (
    _dense("fc6", (0.929, 1.330), 0.642, 25088, 4096),
    _dense("fc7", (0.270, 0.311), 0.105, 4096, 4096),
    _dense("fc8", (0.155, 0.145), 0.026, 4096, 1000, last=True),
)
LAYERS: tuple[Layer, ...] = (*CONVOLUTIONS, *POOLS, *FULLY_CONNECTED)
