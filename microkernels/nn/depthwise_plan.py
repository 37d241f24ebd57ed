"""Depthwise convolutions: sizes, golden model, and the strips that are computed at once.

Depthwise convolutions have one filter per channel, which sees only that channel. As channels are in
the vector unit's lanes, each product is shifted right and rounded separately; sums saturate. With
bytes, products, sums, weights and biases are bytes.

A strip (:class:`Strip`) is a part of a column's outputs: pixels below each other, and channels.
More pixels read fewer rows twice; longer vectors leave more room beside each instruction; weights
are repeated for each pixel of a vector, so that long vectors take room for weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from isa.limits import RANGE_BYTES
from isa.table import MAX_VL
from isa.timing import VECTOR_LATENCY
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES, round_up
from microkernels.common.fixed_point import (
    ELEMENT,
    ELEMENT_BYTES,
    Elements,
    add,
    check_bits,
    check_elements,
    check_fraction,
    multiply,
    packed,
    unpack,
)
from microkernels.common.scratchpad_plan import ScratchpadPlan

from .window_shape import StridedShape

#: Maximum words of a program with several vectors in a strip.
_MOST_WORDS = 450
#: Channels of a part of a slice are a multiple of this.
_PART = COLUMN_BYTES // ELEMENT_BYTES
#: Columns that are loaded in about the time of a strip.
_COLUMNS = 8
#: Elements per beat of the vector unit.
_BEAT = 4
#: Used only for choosing: bytes that the memory transfers per cycle; cycles besides those of
#: instructions: of a strip, of one whose vectors have fewer beats than :data:`_SHORT`, of a line,
#: of one with other weights, and before the first products.
_BUS, _SHORT = 7.4, 6
_STRIP, _STRIP_OF_SHORT, _LINE, _CHANGE, _START = 10, 28, 60, 130, 400


@dataclass(frozen=True, kw_only=True)
class DepthwiseShape(StridedShape):
    """Sizes of a depthwise convolution of a map that includes its padding.

    Attributes:
        fraction: bits by which products are shifted right, 0..15.
        relu: negative outputs become 0.
        bits: of a number, 16 or 8; channels count elements.

    Raises:
        KernelError: a value out of range, padding, or a window larger than the map.
    """

    fraction: int
    relu: bool = True
    bits: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bits(self.bits, "depthwise", ("depthwise",))
        if self.padding:
            raise KernelError("the map has the pixels around it, so padding must be 0")
        check_fraction(self.fraction)
        if self.across > self.width or self.down > self.height:
            raise KernelError(
                f"a window of {self.across} x {self.down} does not fit a map of {self.width} x "
                f"{self.height} pixels"
            )

    @property
    def columns(self) -> range:
        """Columns of a window."""
        return range(0, self.across, self.dilation)

    @property
    def rows(self) -> range:
        """Rows of a window."""
        return range(0, self.down, self.gap_down)

    @property
    def taps(self) -> int:
        """Pixels per window."""
        return self.kernel * self.kernel_rows


def depthwise(
    shape: DepthwiseShape, image: Elements, weights: Elements, bias: Elements
) -> Elements:
    """Golden model: out height x out width x channels elements.

    Products are added column by column of the window, each from top to bottom; then the bias.

    Parameters:
        image: height x width x channels elements. weights: channels x rows x columns.
        bias: one element per channel.

    Raises:
        KernelError: arrays of another shape.
    """
    image = check_elements("image", image, (shape.height, shape.width, shape.channels))
    taps = (shape.channels, shape.kernel_rows, shape.kernel)
    weights = check_elements("weights", weights, taps)
    bias = unpack(check_elements("bias", bias, (shape.channels,)), shape.bits)
    image, weights = (unpack(part, shape.bits) for part in (image, weights.transpose(1, 2, 0)))
    total: Elements | None = None
    for across, column in enumerate(shape.columns):
        for down, row in enumerate(shape.rows):
            seen = image[
                row : row + (shape.out_height - 1) * shape.step_down + 1 : shape.step_down,
                column : column + (shape.out_width - 1) * shape.stride + 1 : shape.stride,
            ]
            product = multiply(seen, weights[down, across], shape.fraction)
            total = product if total is None else add(total, product)
    assert total is not None
    total = add(total, bias)
    return (np.maximum(total, 0) if shape.relu else total).view(ELEMENT)


class Strip(NamedTuple):
    """What is computed at once.

    Attributes:
        shape: of the layer. depth: channels per slice of its maps.
        lanes: channels. together: pixels per vector. vectors: number of vectors.
    """

    shape: DepthwiseShape
    depth: int
    lanes: int
    together: int
    vectors: int

    @property
    def pixels(self) -> int:
        """Pixels of a column."""
        return self.together * self.vectors

    @property
    def unit(self) -> int:
        """Elements per vector."""
        return self.together * self.lanes

    @property
    def unit_bytes(self) -> int:
        """Bytes per vector."""
        return self.unit * ELEMENT_BYTES

    @property
    def pixel_bytes(self) -> int:
        """Bytes per pixel in the scratchpad."""
        return self.lanes * ELEMENT_BYTES

    @property
    def beats(self) -> int:
        """Cycles of a vector instruction."""
        return -(-self.unit // _BEAT)

    @property
    def operations(self) -> int:
        """Vector instructions."""
        return (2 * self.shape.taps + self.shape.relu) * self.vectors

    @property
    def seen(self) -> int:
        """Pixels of a column of the input that it needs."""
        return (self.pixels - 1) * self.shape.step_down + self.shape.down

    @property
    def freed(self) -> int:
        """Columns of the input that are not needed after it."""
        return min(self.shape.stride, self.shape.across)

    @property
    def at_once(self) -> int:
        """Columns that are loaded at once: one, or a window if windows do not overlap."""
        return self.shape.across if self.shape.stride > self.shape.across else 1

    @property
    def contiguous(self) -> bool:
        """Whether it has all channels of a slice, so that its pixels are contiguous."""
        return self.lanes == self.depth

    @property
    def stores(self) -> int:
        """Number of stores."""
        return 1 if self.contiguous else self.pixels

    @property
    def loads(self) -> int:
        """Loads per column: one per pixel if they are not, or do not stay, contiguous."""
        return 1 if self.contiguous and self.shape.step_down == 1 else self.seen

    @property
    def remainder_pixels(self) -> int:
        """Pixels per slot whose numbers have the same remainder."""
        return -(-self.seen // self.shape.step_down)

    def place(self, pixel: int) -> int:
        """Bytes from the start of a slot to a pixel of the column."""
        number, rest = divmod(pixel, self.shape.step_down)
        return (rest * self.remainder_pixels + number) * self.pixel_bytes

    @property
    def scratchpad(self) -> ScratchpadPlan:
        """Threshold, weights and biases, outputs, products, and the ring."""
        plan = ScratchpadPlan({"threshold": ELEMENT_BYTES})
        plan.take("weights", (self.shape.taps + 1) * self.unit_bytes)
        plan.take_each("outputs", 2, self.vectors * self.unit_bytes)
        plan.take_each("products", 2, self.unit_bytes)
        pixels = self.remainder_pixels * self.shape.step_down
        slot = round_up(pixels * self.pixel_bytes, RANGE_BYTES)
        plan.set_ring(plan.used, slot, self.shape.across + self.freed, slot)
        return plan

    @property
    def _beside(self) -> int:
        """Instructions beside those on vectors."""
        taps, loads = self.shape.taps, self.freed * (3 * self.loads + 8)
        fixed = taps + 4 * self.shape.across
        return self.vectors * (taps + 1) + fixed + loads + 3 * self.stores

    @property
    def words(self) -> int:
        """Words of the program, about."""
        return self._beside + self.operations + 2 * (3 * self.loads + 12) + 110

    @property
    def parts(self) -> int:
        """Parts of the channels."""
        return -(-self.shape.channels // self.depth) * self.depth // self.lanes

    def _lines(self, width: int) -> int:
        """Lines of so many outputs."""
        rows = -(-self.shape.out_height // self.pixels)
        return rows * self.parts * -(-self.shape.out_width // width)

    def width(self, sharers: int) -> int:
        """Outputs of a line on so many engines."""
        widths = (-(-self.shape.out_width // count) for count in range(1, sharers + 1))
        # Columns that are loaded before the first strip take some of the time of strips.
        start = 1 + self.shape.across // _COLUMNS
        return min(widths, key=lambda width: -(-self._lines(width) // sharers) * (width + start))

    def cycles(self, sharers: int) -> float:
        """Predicted cycles of the layer on so many engines."""
        shape, parts, width = self.shape, self.parts, self.width(sharers)
        lines = self._lines(width)
        step = max(self.operations * self.beats, self.operations + self._beside) + _STRIP
        if self.beats < _SHORT:
            step += _STRIP_OF_SHORT
        if self.vectors * self.beats < VECTOR_LATENCY:
            step += (1 + shape.relu) * VECTOR_LATENCY
        piece = self.pixel_bytes * (self.seen if self.loads == 1 else 1)
        aligned = self.loads > 1 and self.depth % _PART == self.lanes % _PART == 0
        column = round_up(piece, COLUMN_BYTES) + (not aligned) * COLUMN_BYTES // 2
        column *= self.loads
        weights = (shape.taps + 1) * self.unit_bytes
        start = _START + sharers * (weights + column * shape.across) / _BUS
        changes = -(-parts // sharers) - 1
        rest = shape.across - self.freed
        line = width * step + rest * (3 * self.loads + 8) + _LINE
        columns = width * self.freed + rest
        moved = columns * column + width * self.pixels * self.pixel_bytes
        taken = -(-lines // sharers) * line + changes * _CHANGE
        return start + max(taken, (lines * moved + sharers * changes * weights) / _BUS)


#: Maximum vectors of a strip, each of which takes a register.
_MOST_VECTORS = 16


def _strips(shape: DepthwiseShape, depth: int, scratchpad_bytes: int) -> Iterator[Strip]:
    """All strips that fit."""
    most = MAX_VL // packed(shape.bits)
    for lanes in (depth, *range(_PART, depth, _PART)):
        if depth % lanes:
            continue
        for together in range(1, min(shape.out_height, most // lanes) + 1):
            for vectors in range(1, min(shape.out_height // together, _MOST_VECTORS) + 1):
                strip = Strip(shape, depth, lanes, together, vectors)
                long = together * vectors > 1 and strip.words > _MOST_WORDS
                if long or strip.scratchpad.used > scratchpad_bytes:
                    break
                yield strip


@lru_cache(maxsize=1024)
def best_strip(
    shape: DepthwiseShape,
    depth: int,
    *,
    sharers: int = 1,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> Strip:
    """The strip for which the layer is fastest, by prediction.

    Parameters:
        depth: channels per slice. sharers: number of engines, at least 1.

    Raises:
        KernelError: no strip fits the scratchpad.
    """
    fitting = list(_strips(shape, depth, scratchpad_bytes))
    if not fitting:
        raise KernelError(
            f"a window of {shape.across} x {shape.down} pixels of {depth} channels does not fit a "
            f"scratchpad of {scratchpad_bytes} bytes"
        )
    return min(fitting, key=lambda strip: strip.cycles(sharers))
