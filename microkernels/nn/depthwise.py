"""Depthwise convolutions: sizes, golden model, layout and kernel.

Each channel has one filter, which sees only that channel. As channels are in the vector unit's
lanes, each product is shifted right and rounded separately; sums saturate. With bytes, products,
sums, weights and biases are bytes.

Outputs are computed in *strips*: ``pixels`` of a column, all channels of a slice, as one vector. A
slice's weights are stored as such vectors, repeated for each pixel, one per pixel of the window,
followed by the biases. The scratchpad contains the threshold, these vectors, two outputs, two
vectors of products, and a ring of *slots*: the pixels of an input column that a strip needs. With a
vertical stride, pixels whose numbers have the same remainder are stored together, so that a vector
finds those of one row of the windows one after the other.

The work is divided into *lines*: a row of strips of one slice. The last strips overlap the previous
ones. A line's words are the addresses of its first input, of its first output and of its weights.
The constant is the threshold.

For each pixel of the window the program computes a product of whole vectors, with channels in the
lanes, and a sum. Input columns are loaded one step ahead. A sum follows the next product, so it
need not wait for its own.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isa.program import Program
from isa.table import MAX_VL
from isa.timing import RANGE_BYTES
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, round_up
from microkernels.common.fixed_point import (
    ELEMENT,
    ELEMENT_BYTES,
    NUMBERS,
    Elements,
    add,
    check_bits,
    check_elements,
    check_fraction,
    multiply,
    packed,
    unpack,
)
from microkernels.common.memory import Writable
from microkernels.common.scratchpad import ScratchpadPlan

from .line import LineKernel, LineLayout, part_starts
from .strided_shape import StridedShape

__all__ = [
    "DepthwiseLayout",
    "DepthwiseShape",
    "best_pixels",
    "depthwise",
    "predict_depthwise",
]


@dataclass(frozen=True, kw_only=True)
class DepthwiseShape(StridedShape):
    """Sizes of a depthwise convolution of a map that includes its padding.

    Attributes:
        across, down: pixels per window, at least 1.
        fraction: bits by which products are shifted right, 0..15.
        relu: negative outputs become 0.
        bits: of a number, 16 or 8; channels count elements.

    Raises:
        KernelError: a value out of range, padding, or a window larger than the map.
    """

    across: int = 3
    down: int = 3
    fraction: int
    relu: bool = True
    bits: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bits(self.bits, "depthwise", ("depthwise",))
        if self.padding:
            raise KernelError("the map has the pixels around it, so padding must be 0")
        for name in ("across", "down"):
            CHECK.at_least(name, getattr(self, name), 1)
        check_fraction(self.fraction)
        if self.across > self.width or self.down > self.height:
            raise KernelError(
                f"a window of {self.across} x {self.down} does not fit a map of {self.width} x "
                f"{self.height} pixels"
            )

    @property
    def taps(self) -> int:
        """Pixels per window."""
        return self.across * self.down


def depthwise(
    shape: DepthwiseShape, image: Elements, weights: Elements, bias: Elements
) -> Elements:
    """Golden model: out height x out width x channels elements.

    Products are added column by column of the window, each from top to bottom; then the bias.

    Parameters:
        image: height x width x channels elements. weights: channels x down x across.
        bias: one element per channel.

    Raises:
        KernelError: arrays of another shape.
    """
    image = check_elements("image", image, (shape.height, shape.width, shape.channels))
    weights = check_elements("weights", weights, (shape.channels, shape.down, shape.across))
    bias = unpack(check_elements("bias", bias, (shape.channels,)), shape.bits)
    image, weights = (unpack(part, shape.bits) for part in (image, weights.transpose(1, 2, 0)))
    total: Elements | None = None
    for column in range(shape.across):
        for row in range(shape.down):
            seen = image[
                row : row + (shape.out_height - 1) * shape.step_down + 1 : shape.step_down,
                column : column + (shape.out_width - 1) * shape.stride + 1 : shape.stride,
            ]
            product = multiply(seen, weights[row, column], shape.fraction)
            total = product if total is None else add(total, product)
    assert total is not None
    total = add(total, bias)
    return (np.maximum(total, 0) if shape.relu else total).view(ELEMENT)


#: Maximum loads in flight; the array range check has 20 entries.
_MOST_LOADS = 18
#: Used only for choosing: lanes; cycles of an instruction and of a strip besides the beats; of a
#: line.
_LANES, _STEP, _STRIP, _LINE = 4, 1, 20, 150


def _slot_pixels(shape: DepthwiseShape, pixels: int) -> int:
    """Pixels per slot, including those that pad the remainders."""
    seen = (pixels - 1) * shape.step_down + shape.down
    return -(-seen // shape.step_down) * shape.step_down


def _vector_bytes(pixels: int, depth: int) -> int:
    """Bytes of this many pixels in the scratchpad."""
    return round_up(pixels * depth * ELEMENT_BYTES, RANGE_BYTES)


def _scratchpad(shape: DepthwiseShape, depth: int, pixels: int) -> ScratchpadPlan:
    vectors = 2 * _vector_bytes(pixels, depth)
    slot = _vector_bytes(_slot_pixels(shape, pixels), depth)
    return ScratchpadPlan(
        {
            "threshold": ELEMENT_BYTES,
            "weights": (shape.taps + 1) * pixels * depth * ELEMENT_BYTES,
            "outputs": vectors,
            "products": vectors,
            "ring": (shape.across + shape.stride) * slot,
        }
    )


def _fits(shape: DepthwiseShape, depth: int, pixels: int, scratchpad_bytes: int) -> bool:
    loads = shape.stride * (
        1 if shape.step_down == 1 else (pixels - 1) * shape.step_down + shape.down
    )
    small = shape.step_down > 1 or loads <= _MOST_LOADS
    end = _scratchpad(shape, depth, pixels).used
    vector = pixels * depth * packed(shape.bits)
    return small and vector <= MAX_VL and end <= scratchpad_bytes


def _cycles(shape: DepthwiseShape, depth: int, pixels: int, sharers: int) -> float:
    strips = -(-shape.out_height // pixels)
    lines = -(-strips * -(-shape.channels // depth) // sharers)
    beats = -(-pixels * depth // _LANES) + _STEP
    return lines * (shape.out_width * ((2 * shape.taps + 1) * beats + _STRIP) + _LINE)


def best_pixels(
    shape: DepthwiseShape,
    depth: int,
    *,
    sharers: int = 1,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> int:
    """Pixels per strip for which the layer is fastest, by prediction.

    Parameters:
        depth: channels per slice. sharers: number of engines, at least 1.

    Raises:
        KernelError: no strip fits the scratchpad.
    """
    fitting = [
        pixels
        for pixels in range(1, shape.out_height + 1)
        if _fits(shape, depth, pixels, scratchpad_bytes)
    ]
    if not fitting:
        raise KernelError(
            f"a window of {shape.across} x {shape.down} pixels of {depth} channels does not fit a "
            f"scratchpad of {scratchpad_bytes} bytes"
        )
    return min(fitting, key=lambda pixels: _cycles(shape, depth, pixels, sharers))


def predict_depthwise(
    shape: DepthwiseShape,
    depth: int,
    *,
    sharers: int,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> float:
    """Predicted cycles; parameters and exceptions as for :func:`best_pixels`."""
    pixels = best_pixels(shape, depth, sharers=sharers, scratchpad_bytes=scratchpad_bytes)
    return _cycles(shape, depth, pixels, sharers)


@dataclass(frozen=True, kw_only=True)
class DepthwiseLayout(LineLayout):
    """Addresses of a depthwise convolution; see the module's text.

    Attributes:
        shape: of the layer.

    Raises:
        KernelError: maps that do not fit the layer, a window that does not fit the scratchpad, or a
            value out of range.
    """

    shape: DepthwiseShape

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = self.shape
        self._check_maps(
            "depthwise convolutions need",
            (shape.width, shape.height, shape.channels),
            (shape.out_width, shape.out_height, shape.channels),
        )
        _ = self.pixels

    @cached_property
    def pixels(self) -> int:
        """Outputs per strip."""
        return best_pixels(
            self.shape,
            self.source.depth,
            sharers=self.sharers,
            scratchpad_bytes=self.scratchpad_bytes,
        )

    # Scratchpad.

    @property
    def depth(self) -> int:
        """Channels per slice."""
        return self.source.depth

    @property
    def vector(self) -> int:
        """Elements per strip."""
        return self.pixels * self.depth

    @property
    def scratchpad(self) -> ScratchpadPlan:
        """Threshold, weights and biases, two outputs, two vectors of products, and the ring."""
        return _scratchpad(self.shape, self.depth, self.pixels)

    @property
    def vector_bytes(self) -> int:
        """Bytes of a strip in the scratchpad."""
        return _vector_bytes(self.pixels, self.depth)

    @property
    def slot_bytes(self) -> int:
        """Bytes per slot."""
        return _vector_bytes(_slot_pixels(self.shape, self.pixels), self.depth)

    @property
    def slots(self) -> int:
        """Slots of the ring: the columns of a window, and those of the next step."""
        return self.shape.across + self.shape.stride

    @property
    def column_pixels(self) -> int:
        """Pixels of a column that a strip needs."""
        return (self.pixels - 1) * self.shape.step_down + self.shape.down

    def place(self, pixel: int) -> int:
        """Bytes from the start of a slot to a pixel of the column."""
        number, rest = divmod(pixel, self.shape.step_down)
        column = _slot_pixels(self.shape, self.pixels) // self.shape.step_down
        return (rest * column + number) * self.depth * ELEMENT_BYTES

    # Memory.

    @property
    def _lines(self) -> list[tuple[int, int]]:
        """Slice and first row of outputs of each line."""
        rows = part_starts(self.shape.out_height, self.pixels)
        return [(piece, row) for piece in range(self.source.slices) for row in rows]

    @property
    def line_words(self) -> int:
        return 3

    def _words(self, line: tuple[int, int]) -> list[int]:
        piece, row = line
        channel = piece * self.depth
        return [
            self.source.address(0, row * self.shape.step_down, channel),
            self.target.address(0, row, channel),
            self.weights + piece * self._weight_step,
        ]

    @property
    def weights(self) -> int:
        """Address of the weights and biases, slice by slice."""
        return self.constants + COLUMN_BYTES

    @property
    def weight_elements(self) -> int:
        """Elements of a slice's weights and biases."""
        return (self.shape.taps + 1) * self.vector

    @property
    def _weight_step(self) -> int:
        return round_up(self.weight_elements * ELEMENT_BYTES, COLUMN_BYTES)

    @property
    def end(self) -> int:
        return self.weights + self.source.slices * self._weight_step

    def store(self, memory: Writable, weights: Elements, bias: Elements) -> None:
        """Write everything except the maps to ``memory``.

        Parameters:
            weights: channels x down x across elements. bias: one element per channel.

        Raises:
            isa.image.ImageError: the layout is outside the memory.
        """
        numbers = NUMBERS[self.shape.bits]
        threshold = 0 if self.shape.relu else np.iinfo(numbers).min
        self._store_fixed(memory, np.array([threshold], numbers).tobytes())
        taps = weights.transpose(2, 1, 0).reshape(self.shape.taps, -1)
        rows = np.concatenate([taps, bias[np.newaxis]])
        filled = np.pad(rows, ((0, 0), (0, self.source.slices * self.depth - rows.shape[1])))
        for number in range(self.source.slices):
            part = filled[:, number * self.depth : (number + 1) * self.depth]
            tiled = np.tile(part, (1, self.pixels)).astype(ELEMENT)
            memory.write(self.weights + number * self._weight_step, tiled.tobytes())

    def generate(self, vault_bits: int | None) -> Program:
        shape = self.shape
        name = f"depthwise_{shape.across}x{shape.down}x{shape.channels}.s"
        return _DepthwiseKernel(self, vault_bits).build().program(name)


class _DepthwiseKernel(LineKernel[DepthwiseLayout]):
    def __init__(self, layout: DepthwiseLayout, vault_bits: int | None) -> None:
        shape, scratchpad = layout.shape, layout.scratchpad
        super().__init__(
            layout,
            vault_bits,
            f"Depthwise convolution: {shape.width} x {shape.height} x {shape.channels}, window "
            f"{shape.across} x {shape.down}, stride {shape.stride} x {shape.step_down}, "
            f"strips of {layout.pixels} pixels of {layout.depth} channels.",
            {
                scratchpad["threshold"]: "threshold",
                scratchpad["weights"]: "weights and biases",
                scratchpad["outputs"]: "two outputs",
                scratchpad["products"]: "two vectors of products",
                scratchpad["ring"]: f"ring of {layout.slots} slots of {layout.slot_bytes} bytes",
            },
            bits=shape.bits,
        )
        w = self.writer
        reg = w.register
        self.described = reg("described", "address of the next line's description")
        self.source = reg("source", "address of the next column to load")
        self.out = reg("out", "address of the output")
        self.line_weights = reg("line_weights", "address of the weights")
        self.left = reg("left", "outputs left in the line")
        self.to_load = reg("to_load", "columns left to load")
        self.columns = [reg(f"column_{n}", "slot of a column") for n in range(layout.slots)]
        self.tmp = reg("tmp", "temporary")
        self.tmp1 = reg("tmp1", "temporary")
        self.tmp2 = reg("tmp2", "temporary")
        outputs, products = scratchpad["outputs"], scratchpad["products"]
        size = layout.vector_bytes
        self.result = w.variable("result", outputs, "output that is computed")
        self.stored = w.variable("stored", outputs + size, "output that is stored")
        self.products = [
            w.constant(f"product_{n}", products + n * size, "products") for n in (0, 1)
        ]
        self.weights = w.constant("weights", scratchpad["weights"], "weights")
        self.threshold = w.constant("threshold", 0, "threshold")
        self.one = w.constant("one", 1, "a number")
        self.vector = w.constant("vector", layout.vector * self.packed, "numbers of a strip")
        weights = layout.weight_elements * self.packed
        self.all_weights = w.constant("all_weights", weights, "weights, biases")
        pixels = layout.column_pixels if shape.step_down == 1 else 1
        self.piece = w.constant("piece", pixels * layout.depth * self.packed, "numbers of a load")

    def _begin(self) -> None:
        w = self.writer
        w.load(self.threshold, self.constants, self.one, note="threshold")
        self._set("fx", self.layout.shape.fraction)
        w.op("set.vl", self.vector)

    def _line(self) -> None:
        w, layout, shape = self.writer, self.layout, self.layout.shape
        for word in (self.source, self.out, self.line_weights):
            w.read(word, self.described)
        w.load(self.weights, self.line_weights, self.all_weights, note="weights and biases")
        for number, column in enumerate(self.columns):
            w.op("li", column, layout.scratchpad["ring"] + number * layout.slot_bytes)
        w.op("li", self.to_load, (shape.out_width - 1) * shape.stride + shape.across)
        w.op("li", self.left, shape.out_width)
        w.note("Columns of the first window.")
        for column in self.columns[: shape.across]:
            self._load(column)
        w.note("A strip.")
        w.label("strip")
        for column in self.columns[shape.across :]:
            with w.unless("beq", self.to_load, w.zero):
                self._load(column)
        self._strip()
        w.op("sub", self.left, self.left, 1)
        w.op("bne", self.left, w.zero, "strip")

    def _load(self, slot: str) -> None:
        """Load the next column into a slot."""
        w, layout = self.writer, self.layout
        if layout.shape.step_down == 1:
            w.load(slot, self.source, self.piece)
        else:
            pixel = layout.depth * ELEMENT_BYTES
            w.op("mov", self.tmp1, self.source)
            for number in range(layout.column_pixels):
                w.offset(self.tmp, slot, layout.place(number))
                w.load(self.tmp, self.tmp1, self.piece)
                w.op("add", self.tmp1, self.tmp1, pixel)
        w.offset(self.source, self.source, layout.source.x_step)
        w.op("sub", self.to_load, self.to_load, 1)

    def _operand(self, column: str, row: int) -> str:
        """Address of the pixels seen by row ``row`` of the windows."""
        place = self.layout.place(row)
        if not place:
            return column
        self.writer.offset(self.tmp, column, place)
        return self.tmp

    def _strip(self) -> None:
        w, layout, shape = self.writer, self.layout, self.layout.shape
        step = layout.vector * ELEMENT_BYTES
        taps = [(column, row) for column in range(shape.across) for row in range(shape.down)]
        pending = ""
        for number, (column, row) in enumerate(taps):
            weight = self.weights
            if number:
                weight = self.tmp1
                w.offset(weight, self.weights, number * step)
            result = self.products[number % 2] if number else self.result
            w.vector("v.v.mul", result, self._operand(self.columns[column], row), weight)
            if pending:
                w.vector("v.v.add", self.result, self.result, pending)
            pending = result if number else ""
        w.offset(self.tmp1, self.weights, len(taps) * step)
        if pending:
            w.vector("v.v.add", self.result, self.result, pending)
        w.vector("v.v.add", self.result, self.result, self.tmp1, note="bias")
        w.vector("v.s.max", self.result, self.result, self.threshold, note="raise to the threshold")
        w.op("v.drain")
        w.store(self.out, self.result, self.vector)
        w.offset(self.out, self.out, layout.target.x_step)
        w.swap(self.result, self.stored, self.tmp2)
        w.note("The next window.")
        for _ in range(shape.stride):
            w.op("mov", self.tmp, self.columns[0])
            for register, slot in zip(self.columns, [*self.columns[1:], self.tmp], strict=True):
                w.op("mov", register, slot)
