"""Convolutions of single pixels with few products each: layout and kernel.

The kernel of other convolutions takes some 40 instructions per pixel. Here pixels that follow each
other in memory are a *piece*, which is loaded and stored at once: a product with all filters per
pixel, then the biases and the threshold for all of them. Image and output have one slice each.
The arithmetic is that of :func:`microkernels.nn.window_shape.convolve`.

Lines are pieces of a column of pixels, or of all pixels where columns follow each other. The last
one overlaps the previous one. A line's words are the addresses of its pixels and of its outputs.
The constants are the weights, the biases of each pixel of a piece, and the threshold. The
scratchpad contains these, two pieces of outputs, and a ring of pieces in flight.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isa.program import Program
from isa.table import MAX_VL
from microkernels.common.builder import DEFAULT_SCRATCHPAD, WORD_BYTES
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES, FeatureMap, part_starts, round_up
from microkernels.common.fixed_point import ELEMENT, ELEMENT_BYTES, LOWEST, Elements
from microkernels.common.memory import Writable
from microkernels.common.scratchpad_plan import ScratchpadPlan
from support.errors import counted

from .line import LineLayout, StreamKernel
from .window_shape import ConvShape

__all__ = ["PointLayout", "predict_point"]

_LANES = 4
_LEAST_SLOTS, _MOST_SLOTS = 2, 6
#: Most pixels of a piece, each of which takes three words of the program.
_MOST_PIXELS = 64
#: For estimates: fewest cycles of a product, cycles of a piece besides its vectors, and of the
#: start; cycles of a bus per column of memory.
_PRODUCT, _PIECE, _START, _COLUMN = 3, 110, 600, 5


def _scratchpad(shape: ConvShape, pixels: int, scratchpad_bytes: int) -> ScratchpadPlan:
    outputs = pixels * shape.filters * ELEMENT_BYTES
    plan = ScratchpadPlan({"weights": shape.filters * shape.channels * ELEMENT_BYTES})
    plan.take("biases", outputs)
    plan.take("threshold", ELEMENT_BYTES)
    plan.take_each("outputs", 2, outputs)
    piece = pixels * shape.channels * ELEMENT_BYTES
    plan.take_ring(1, piece, most=_MOST_SLOTS, room=scratchpad_bytes)
    return plan


def _cycles(shape: ConvShape, pixels: int, pieces: int, sharers: int) -> float:
    """Predicted cycles of an engine with so many pieces of so many pixels."""
    beats = shape.filters * -(-shape.channels // _LANES)
    vectors = pixels * max(beats, _PRODUCT) + 2 * -(-pixels * shape.filters // _LANES)
    moved = pixels * (shape.channels + shape.filters) * ELEMENT_BYTES
    bus = sharers * _COLUMN * (moved / COLUMN_BYTES + 2)
    return _START + pieces * max(vectors + _PIECE, bus)


def _best(shape: ConvShape, run: int, runs: int, sharers: int, room: int) -> tuple[float, int]:
    """Predicted cycles, and pixels of a piece.

    Parameters:
        run: pixels that follow each other. runs: their number. room: bytes of the scratchpad.
    """
    options = []
    if shape.pointwise:
        for pixels in range(1, min(run, _MOST_PIXELS, MAX_VL // shape.filters) + 1):
            if _scratchpad(shape, pixels, room).slots < _LEAST_SLOTS:
                break
            pieces = -(-runs * -(-run // pixels) // sharers)
            options.append((_cycles(shape, pixels, pieces, sharers), pixels))
    if not options or shape.channels > MAX_VL:
        raise KernelError(
            f"filters of {shape.channels} channels do not fit pieces of pixels in a scratchpad of "
            f"{room} bytes"
        )
    return min(options)


def predict_point(
    shape: ConvShape, *, sharers: int, scratchpad_bytes: int = DEFAULT_SCRATCHPAD
) -> float:
    """Predicted cycles, with columns that do not follow each other.

    Parameters:
        sharers: number of engines, at least 1.

    Raises:
        KernelError: windows, strides or groups that it does not have, or filters that do not fit.
    """
    return _best(shape, shape.height, shape.width, sharers, scratchpad_bytes)[0]


@dataclass(frozen=True, kw_only=True)
class PointLayout(LineLayout):
    """Addresses of a convolution of single pixels; see the module's text.

    Attributes:
        shape: of the layer.
        fraction: bits by which sums of products are shifted right, 0..15.
        relu: negative outputs become 0.

    Raises:
        KernelError: maps that do not fit the layer or have several slices, or as of
            :func:`predict_point`.
    """

    shape: ConvShape
    fraction: int
    relu: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        width, height = self.shape.width, self.shape.height
        sizes = ((width, height, count) for count in (self.shape.channels, self.shape.filters))
        self._check_maps("single pixels need", *sizes, one_slice=True)
        _ = self.pixels

    @property
    def _apart(self) -> bool:
        """Whether columns are apart from each other in a map."""
        maps: tuple[FeatureMap, ...] = (self.source, self.target)
        return any(each.x_step != each.height * each.y_step for each in maps)

    @property
    def _run(self) -> int:
        """Pixels that follow each other in both maps."""
        return self.shape.height * (1 if self._apart else self.shape.width)

    @cached_property
    def pixels(self) -> int:
        """Pixels of a piece."""
        runs = self.shape.width if self._apart else 1
        return _best(self.shape, self._run, runs, self.sharers, self.scratchpad_bytes)[1]

    @property
    def scratchpad(self) -> ScratchpadPlan:
        """The constants, two pieces of outputs, and the ring."""
        return _scratchpad(self.shape, self.pixels, self.scratchpad_bytes)

    # Memory.

    @property
    def _lines(self) -> list[tuple[int, int]]:
        """Each line's column and first pixel."""
        columns = range(self.shape.width if self._apart else 1)
        return [(x, y) for x in columns for y in part_starts(self._run, self.pixels)]

    def _words(self, line: tuple[int, int]) -> list[int]:
        x, pixel = line
        maps = (self.source, self.target)
        return [each.address(x, 0) + pixel * each.y_step for each in maps]

    @property
    def end(self) -> int:
        return self.constants + round_up(self.scratchpad["outputs0"], COLUMN_BYTES)

    def store(self, memory: Writable, weights: Elements, bias: Elements) -> None:
        """Write everything except the maps to ``memory``.

        Parameters:
            weights: filters x 1 x 1 x channels elements. bias: one element per filter.

        Raises:
            isa.image.ImageError: the layout is outside the memory.
        """
        constants = bytearray(self.scratchpad["outputs0"])
        for name, values in (
            ("weights", weights),
            ("biases", np.tile(bias, self.pixels)),
            ("threshold", np.array([0 if self.relu else LOWEST])),
        ):
            first, data = self.scratchpad[name], values.astype(ELEMENT).tobytes()
            constants[first : first + len(data)] = data
        self._store_fixed(memory, bytes(constants))

    def generate(self, vault_bits: int | None) -> Program:
        name = f"point_{self.shape.channels}x{self.shape.filters}.s"
        return _PointKernel(self, vault_bits).build().program(name)


class _PointKernel(StreamKernel[PointLayout]):
    _line_loads = 1

    def __init__(self, layout: PointLayout, vault_bits: int | None) -> None:
        shape, plan = layout.shape, layout.scratchpad
        super().__init__(
            layout,
            vault_bits,
            f"Convolution of single pixels: {shape.channels} channels, {shape.filters} filters, "
            f"pieces of {counted(layout.pixels, 'pixel')}.",
            plan,
        )
        w = self.writer
        reg = w.register
        self.described = reg("described", "address of the next line's outputs in its description")
        self.ahead = reg("ahead", "address of the description of the line to load next")
        self.next_from = [reg("next_from", "that line: address of its pixels")]
        self.load_from = [reg("load_from", "address of the pixels to load next")]
        self.load_lines = reg("load_lines", "lines left to load")
        self.load_left = reg("load_left", "pieces left to load in the line")
        self.slot = reg("use", "piece in use")
        self.fill = reg("load_slot", "slot to load next")
        self.out = reg("out", "address of the outputs")
        self.tmp = reg("tmp", "temporary")
        self.tmp1 = reg("tmp1", "temporary")
        self.result = w.variable("result", plan["outputs0"], "outputs of the piece")
        self.other = w.variable("other", plan["outputs1"], "outputs of the piece before")
        self.weights = w.constant("weights", plan["weights"], "weights")
        self.biases = w.constant("biases", plan["biases"], "biases")
        self.threshold = w.constant("threshold", plan["threshold"], "threshold")
        self.ring = w.constant("ring", plan.ring, "ring")
        self.ring_end = w.constant("ring_end", plan.used, "its end")
        self.channels = w.constant("channels", shape.channels, "channels of a pixel")
        pixels = layout.pixels
        self.piece = w.constant("piece", pixels * shape.channels, "elements of a piece")
        self.outputs = w.constant("outputs", pixels * shape.filters, "outputs of a piece")

    def _begin(self) -> None:
        w, layout = self.writer, self.layout
        self._set("fx", layout.fraction)
        self._set("mr", layout.shape.filters)
        w.op("set.vl", self.channels)
        w.op("mov", self.ahead, self.described)
        w.op("add", self.described, self.described, WORD_BYTES)
        w.op("li", self.tmp, layout.scratchpad["outputs0"] // ELEMENT_BYTES)
        w.load(self.weights, self.constants, self.tmp, note="weights, biases, threshold")
        self._begin_stream()
        self._fill_ring(layout.scratchpad.slots, self.tmp1)

    def _load(self, name: str) -> None:
        w, done = self.writer, f"{name}_done"
        w.op("beq", self.load_lines, w.zero, done)
        w.load(self.fill, self.load_from[0], self.piece)
        w.advance_ring(self.fill, self.layout.scratchpad.slot, self.ring, self.ring_end)
        w.op("sub", self.load_lines, self.load_lines, 1)
        w.op("beq", self.load_lines, w.zero, done)
        self._begin_load_line()
        w.label(done)

    def _line(self) -> None:
        w, layout = self.writer, self.layout
        shape, pixels = layout.shape, layout.pixels
        w.vector("m.v.mul.add", self.result, self.weights, self.slot)
        for pixel in range(1, pixels):
            w.offset(self.tmp, self.slot, pixel * shape.channels * ELEMENT_BYTES)
            w.offset(self.tmp1, self.result, pixel * shape.filters * ELEMENT_BYTES)
            w.vector("m.v.mul.add", self.tmp1, self.weights, self.tmp)
        w.read(self.out, self.described)
        w.op("add", self.described, self.described, WORD_BYTES)
        w.op("set.vl", self.outputs)
        w.vector("v.v.add", self.result, self.result, self.biases, note="biases")
        w.vector("v.s.max", self.result, self.result, self.threshold, note="threshold")
        w.op("set.vl", self.channels)
        w.op("v.drain")
        w.store(self.out, self.result, self.outputs)
        self._load("next")
        w.swap(self.result, self.other, self.tmp)
        w.advance_ring(self.slot, layout.scratchpad.slot, self.ring, self.ring_end)
