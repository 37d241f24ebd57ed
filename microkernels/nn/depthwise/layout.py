"""Layout of a depthwise convolution in the scratchpad and in DRAM, and its parameter block.

Outputs are computed in *strips*: ``pixels`` of a column, all channels of a slice, one vector. The
weights of a slice lie in memory as such vectors, repeated for each pixel, one for each pixel of the
window, and the biases after them. The scratchpad holds the threshold, these vectors, two outputs,
two vectors of products, and a ring of *slots*: the pixels of a column of the input that a strip
needs. With a stride down, every pixel whose number has the same rest lies together, so that a
vector finds those of one row of the windows one after the other.

The work is cut into *lines*: a row of strips of one slice. The last strips overlap those before. An
engine's part of the parameter block::

    0  lines; 0: nothing to do
    1  address of the threshold
    2  for each line: address of its first input, of its first output and of its weights; three
       words more
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isa.table import MAX_VL
from isa.timing import RANGE_BYTES
from microkernels.common.block_layout import BlockLayout
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES, FeatureMap, StripMap, round_up
from microkernels.common.fixed_point import ELEMENT, ELEMENT_BYTES, LOWEST, Elements
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import block_bytes, part_sizes

from .shape import DepthwiseShape

__all__ = ["DepthwiseLayout", "best_pixels", "predict_depthwise"]

_HEADER_WORDS = 2
_LINE_WORDS = 3
#: Loads in flight at most; the array range check has 20 entries.
_MOST_LOADS = 18
#: For choosing alone: lanes; cycles of an instruction and of a strip besides the beats; of a line.
_LANES, _STEP, _STRIP, _LINE = 4, 1, 20, 150


def _slot_pixels(shape: DepthwiseShape, pixels: int) -> int:
    """Pixels of a slot, with those that fill up the rests."""
    seen = (pixels - 1) * shape.stride_down + shape.down
    return -(-seen // shape.stride_down) * shape.stride_down


def _scratchpad(shape: DepthwiseShape, depth: int, pixels: int) -> tuple[int, int]:
    """First byte of the ring, and the bytes of a slot."""
    vector = round_up(pixels * depth * ELEMENT_BYTES, RANGE_BYTES)
    slot = round_up(_slot_pixels(shape, pixels) * depth * ELEMENT_BYTES, RANGE_BYTES)
    weights = round_up((shape.taps + 1) * pixels * depth * ELEMENT_BYTES, RANGE_BYTES)
    return RANGE_BYTES + weights + 4 * vector, slot


def _fits(shape: DepthwiseShape, depth: int, pixels: int, scratchpad_bytes: int) -> bool:
    ring, slot = _scratchpad(shape, depth, pixels)
    columns = shape.across + shape.stride_across
    loads = shape.stride_across * (
        1 if shape.stride_down == 1 else (pixels - 1) * shape.stride_down + shape.down
    )
    small = shape.stride_down > 1 or loads <= _MOST_LOADS
    return small and pixels * depth <= MAX_VL and ring + columns * slot <= scratchpad_bytes


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
    """Pixels of a strip for which the layer is fastest, by prediction.

    Parameters:
        depth: channels of a slice. sharers: engines, at least 1.

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
    """Predicted cycles; parameters and exceptions as of :func:`best_pixels`."""
    pixels = best_pixels(shape, depth, sharers=sharers, scratchpad_bytes=scratchpad_bytes)
    return _cycles(shape, depth, pixels, sharers)


@dataclass(frozen=True, kw_only=True)
class DepthwiseLayout(BlockLayout):
    """Addresses of a depthwise convolution; see the module's text.

    Attributes:
        shape: of the layer.
        source, target: maps, in slices of as many channels.
        base: first address of all other data; a multiple of 32.
        sharers: engines that share the layer, at least 1.
        scratchpad_bytes: size of the scratchpad.

    Raises:
        KernelError: maps that do not fit the layer, a window that does not fit the scratchpad, or a
            value outside its range.
    """

    shape: DepthwiseShape
    source: FeatureMap
    target: FeatureMap
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = self.shape
        self.source.check_size("source", shape.width, shape.height, shape.channels)
        self.target.check_size("target", shape.out_width, shape.out_height, shape.channels)
        if isinstance(self.source, StripMap) or isinstance(self.target, StripMap):
            raise KernelError("depthwise convolutions need maps without strips")
        if self.source.depth != self.target.depth:
            raise KernelError(
                f"source has slices of {self.source.depth} channels, target of {self.target.depth}"
            )
        _ = self.pixels

    @cached_property
    def pixels(self) -> int:
        """Outputs of a strip."""
        return best_pixels(
            self.shape,
            self.source.depth,
            sharers=self.sharers,
            scratchpad_bytes=self.scratchpad_bytes,
        )

    # Scratchpad.

    @property
    def depth(self) -> int:
        """Channels of a slice."""
        return self.source.depth

    @property
    def vector(self) -> int:
        """Elements of a strip."""
        return self.pixels * self.depth

    @property
    def vector_bytes(self) -> int:
        """Bytes of a strip in the scratchpad."""
        return round_up(self.vector * ELEMENT_BYTES, RANGE_BYTES)

    @property
    def weights_place(self) -> int:
        """Scratchpad address of the weights; the biases follow."""
        return RANGE_BYTES

    @property
    def outputs(self) -> int:
        """Scratchpad address of the two outputs; two vectors of products follow."""
        return self.ring - 4 * self.vector_bytes

    @property
    def ring(self) -> int:
        """Scratchpad address of the ring."""
        return _scratchpad(self.shape, self.depth, self.pixels)[0]

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot."""
        return _scratchpad(self.shape, self.depth, self.pixels)[1]

    @property
    def slots(self) -> int:
        """Slots of the ring: the columns of a window, and those of the next step."""
        return self.shape.across + self.shape.stride_across

    @property
    def column_pixels(self) -> int:
        """Pixels of a column that a strip needs."""
        return (self.pixels - 1) * self.shape.stride_down + self.shape.down

    def place(self, pixel: int) -> int:
        """Bytes from the beginning of a slot to a pixel of the column."""
        number, rest = divmod(pixel, self.shape.stride_down)
        each = _slot_pixels(self.shape, self.pixels) // self.shape.stride_down
        return (rest * each + number) * self.depth * ELEMENT_BYTES

    # Memory.

    @property
    def _lines(self) -> list[tuple[int, int]]:
        """Slice and first row of outputs of each line."""
        last = self.shape.out_height - self.pixels
        rows = [min(row, last) for row in range(0, self.shape.out_height, self.pixels)]
        return [(piece, row) for piece in range(self.source.slices) for row in rows]

    @property
    def _parts(self) -> list[int]:
        return part_sizes(len(self._lines), self.sharers, fixed=_HEADER_WORDS, each=_LINE_WORDS)

    @property
    def threshold(self) -> int:
        """Address of the element that is the lower limit of the outputs."""
        return self._block_end

    @property
    def weights(self) -> int:
        """Address of the weights and biases, slice after slice."""
        return self.threshold + COLUMN_BYTES

    @property
    def weight_elements(self) -> int:
        """Elements of the weights and biases of a slice."""
        return (self.shape.taps + 1) * self.vector

    @property
    def _weight_step(self) -> int:
        return round_up(self.weight_elements * ELEMENT_BYTES, COLUMN_BYTES)

    @property
    def end(self) -> int:
        """First byte after all data that this layout adds to the maps."""
        return self.weights + self.source.slices * self._weight_step

    def store(self, memory: Writable, weights: Elements, bias: Elements) -> None:
        """Put all but the maps into ``memory``.

        Parameters:
            weights: channels x down x across elements. bias: one for each channel.

        Raises:
            isa.image.ImageError: the layout lies outside the memory.
        """
        memory.write(self.parameters, self.block(self.parameters))
        threshold = 0 if self.shape.relu else LOWEST
        memory.write(self.threshold, np.array([threshold], ELEMENT).tobytes())
        taps = weights.transpose(2, 1, 0).reshape(self.shape.taps, -1)
        rows = np.concatenate([taps, bias[np.newaxis]])
        filled = np.pad(rows, ((0, 0), (0, self.source.slices * self.depth - rows.shape[1])))
        for number in range(self.source.slices):
            part = filled[:, number * self.depth : (number + 1) * self.depth]
            tiled = np.tile(part, (1, self.pixels)).astype(ELEMENT)
            memory.write(self.weights + number * self._weight_step, tiled.tobytes())

    def block(self, address: int) -> bytes:
        """The parameter block, for ``address``; see
        :meth:`microkernels.nn.conv_layout.ConvLayout.block`."""
        words = []
        for member, size in enumerate(self._parts):
            lines = self._lines[member :: self.sharers]
            part = [len(lines), self.threshold]
            for piece, row in lines:
                channel = piece * self.depth
                part += [
                    self.source.address(0, row * self.shape.stride_down, channel),
                    self.target.address(0, row, channel),
                    self.weights + piece * self._weight_step,
                ]
            words.append(part + [0] * (size - len(part)))
        return block_bytes(address, words)
