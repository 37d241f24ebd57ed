"""VGG-16 and VGG-19 (thesis 7.2.1): 13 or 16 convolutions, five poolings and three fully connected
layers."""

from collections.abc import Iterator

from microkernels.common.errors import CHECK

from .network import Conv, Dense, Layer, MapSize, Network, Pool

#: Filters of each group's convolutions; a pooling ends each group.
_GROUPS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
_OUTPUTS = (4096, 4096, 1000)
#: Fraction bits of weights.
_FRACTION = 12
#: Five poolings halve an image each.
_LEAST_SIDE = 32
#: Allowed divisors of all numbers of filters and outputs.
_NARROWER = (1, 2, 4, 8)


def _layers(groups: tuple[tuple[int, ...], ...], outputs: tuple[int, ...]) -> Iterator[Layer]:
    for group, sizes in enumerate(groups, 1):
        for number, filters in enumerate(sizes, 1):
            yield Conv(name=f"conv{group}_{number}", filters=filters, padding=1, fraction=_FRACTION)
        yield Pool(name=f"pool{group}")
    for number, size in enumerate(outputs, len(groups) + 1):
        last = number == len(groups) + len(outputs)
        yield Dense(name=f"fc{number}", outputs=size, fraction=_FRACTION, relu=not last)


def vgg19() -> Network:
    """VGG-19 for images of 224 x 224 pixels: the last three groups have four convolutions."""
    groups = (*_GROUPS[:2], *(group + group[-1:] for group in _GROUPS[2:]))
    return Network(input=MapSize(224, 224, 3), layers=tuple(_layers(groups, _OUTPUTS)))


def vgg16(side: int = 224, *, narrower: int = 1) -> Network:
    """VGG-16 for images of ``side`` x ``side`` pixels.

    Parameters:
        side: at least 32.
        narrower: divides the channels and outputs of all layers: 1, 2, 4 or 8.

    Raises:
        KernelError: a value out of range.
    """
    CHECK.at_least("side", side, _LEAST_SIDE)
    CHECK.one_of("narrower", narrower, _NARROWER)
    return Network(
        input=MapSize(side, side, 3),
        layers=tuple(
            _layers(
                tuple(tuple(size // narrower for size in group) for group in _GROUPS),
                tuple(size // narrower for size in _OUTPUTS),
            )
        ),
    )
