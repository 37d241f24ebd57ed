"""Layout of pooling's data in the scratchpad and in DRAM, and its parameter block.

The scratchpad holds the threshold and the reciprocal, the bias, two outputs, and a ring of *slots*:
the windows of one output in all segments, column by column. Where the program is a loop over a
window's columns, the sum of those so far and a ring of single columns take its place. All begin at
multiples of :data:`isa.timing.RANGE_BYTES`.

The work is cut into *lines*: a row of outputs of one slice of the channels. The engines take the
lines in turns. An engine's part of the parameter block::

    0  lines; 0: nothing to do
    1  address of the threshold and the reciprocal
    2  for each line: address of its first window in the first segment, of its first output and of
       its biases; three words more
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from isa.declared import Declared, Span
from isa.table import MAX_VL
from isa.timing import RANGE_BYTES
from microkernels.common.block_layout import BlockLayout
from microkernels.common.builder import DEFAULT_SCRATCHPAD, INSTRUCTION_WORDS
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES, FeatureMap, StripMap, round_up
from microkernels.common.fixed_point import ELEMENT, ELEMENT_BYTES, LOWEST, Elements, check_elements
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import block_bytes, part_sizes

from .pool_shape import PoolShape

__all__ = ["PoolLayout", "Ring", "window_fits"]

_HEADER_WORDS = 2
_LINE_WORDS = 3
#: Loads in flight at most; the array range check has 20 entries.
_MOST_LOADS = 16


def _column_bytes(shape: PoolShape, depth: int) -> int:
    """Bytes of a column of a window."""
    return round_up(shape.down * depth * ELEMENT_BYTES, RANGE_BYTES)


def _ring(depth: int, *, biased: bool) -> int:
    """Scratchpad address of the ring."""
    return RANGE_BYTES + (2 + biased) * round_up(depth * ELEMENT_BYTES, RANGE_BYTES)


def _fits(shape: PoolShape, depth: int, loads: int, *, biased: bool, scratchpad_bytes: int) -> bool:
    """Whether a column of a slice fits a vector, and ``loads`` of them the scratchpad."""
    end = _ring(depth, biased=biased) + loads * _column_bytes(shape, depth)
    return shape.down * depth <= MAX_VL and end <= scratchpad_bytes


def _least(shape: PoolShape) -> int:
    """Columns that the scratchpad must hold at least: a window, or one with what is combined."""
    return min(shape.window * shape.segments, 1 + shape.segments)


def window_fits(
    shape: PoolShape,
    depth: int,
    *,
    biased: bool = False,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> bool:
    """Whether slices of ``depth`` channels suit an engine: a column of a window fits a vector, and
    a window the scratchpad. Where no window of one channel does, a column need only fit."""
    fits = partial(_fits, shape, biased=biased, scratchpad_bytes=scratchpad_bytes)
    window = shape.window * shape.segments
    return fits(depth, window if fits(1, window) else _least(shape))


class Ring(NamedTuple):
    """A ring of slots in the scratchpad.

    Attributes:
        start: address. slots: 0: none fits. slot_bytes: of a slot.
    """

    start: int
    slots: int
    slot_bytes: int

    @property
    def end(self) -> int:
        """First byte after the ring."""
        return self.start + self.slots * self.slot_bytes


@dataclass(frozen=True, kw_only=True)
class PoolLayout(BlockLayout):
    """Addresses of a pooling layer; see the module's text.

    Attributes:
        shape: of the layer.
        source: the first segment's map; the others follow each other at ``segment_step`` bytes.
        target: the output, in slices of as many channels as the source.
        base: first address of all other data; a multiple of 32.
        segment_step: bytes from segment to segment, a multiple of 2; 0 with one segment.
        biased: there is a bias.
        sharers: engines that share the layer, at least 1.
        scratchpad_bytes: size of the scratchpad.
        instruction_words: of the instruction buffer.

    Raises:
        KernelError: maps that do not fit the layer, windows that do not fit the scratchpad, or a
            value outside its range.
    """

    shape: PoolShape
    source: FeatureMap
    target: FeatureMap
    segment_step: int = 0
    biased: bool = False
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD
    instruction_words: int = INSTRUCTION_WORDS

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = self.shape
        self.source.check_size("source", shape.width, shape.height, shape.channels)
        self.target.check_size("target", shape.out_width, shape.out_height, shape.channels)
        if isinstance(self.source, StripMap) or isinstance(self.target, StripMap):
            raise KernelError("pooling needs maps without strips")
        if self.source.depth != self.target.depth:
            raise KernelError(
                f"source has slices of {self.source.depth} channels, target of {self.target.depth}"
            )
        if self.source.padding < shape.padding:
            raise KernelError(
                f"source has {self.source.padding} pixels around it, the layer {shape.padding}"
            )
        if self.segment_step % ELEMENT_BYTES or self.segment_step < 0:
            raise KernelError(f"segment_step must be even and positive, not {self.segment_step}")
        if self.column > MAX_VL:
            raise KernelError(
                f"a column of {shape.down} pixels of {self.source.depth} channels has "
                f"{self.column} elements, a vector at most {MAX_VL}: give slices of at most "
                f"{MAX_VL // shape.down} channels"
            )
        if self.windows.slots < 1 and self.columns.slots < 1:
            raise KernelError(
                f"a window of {shape.window} x {shape.down} pixels of {self.source.depth} "
                f"channels and {shape.segments} segment(s) does not fit a scratchpad of "
                f"{self.scratchpad_bytes} bytes: {self._fitting}"
            )

    @property
    def _fitting(self) -> str:
        """Suggestion, for the error message, of sizes that fit where the window is too large."""
        for depth in range(self.source.depth - 1, 0, -1):
            if _fits(
                self.shape,
                depth,
                _least(self.shape),
                biased=self.biased,
                scratchpad_bytes=self.scratchpad_bytes,
            ):
                return f"give slices of at most {depth} channels"
        return "no slice does"

    @property
    def column(self) -> int:
        """Elements of a column of a window."""
        return self.shape.down * self.source.depth

    @property
    def column_bytes(self) -> int:
        """Bytes of a column in the scratchpad."""
        return _column_bytes(self.shape, self.source.depth)

    @property
    def depth_bytes(self) -> int:
        """Bytes of a pixel in the scratchpad."""
        return round_up(self.source.depth * ELEMENT_BYTES, RANGE_BYTES)

    @property
    def bias_place(self) -> int:
        """Scratchpad address of the bias, after threshold and reciprocal."""
        return RANGE_BYTES

    @property
    def outputs(self) -> int:
        """Scratchpad address of the two outputs."""
        return self.bias_place + (self.depth_bytes if self.biased else 0)

    @property
    def windows(self) -> Ring:
        """The ring of windows: for each column of a window, that of each segment."""
        return self._ring_from(_ring(self.source.depth, biased=self.biased), self.shape.window)

    @property
    def columns(self) -> Ring:
        """The ring of columns, each in all segments."""
        ring = self._ring_from(self.combined + self.column_bytes, 1)
        return ring._replace(slots=min(ring.slots, self.shape.window))

    @property
    def combined(self) -> int:
        """Scratchpad address of what the columns so far make, where there is a ring of columns."""
        return self.windows.start

    def _ring_from(self, start: int, columns: int) -> Ring:
        loads = columns * self.shape.segments
        size = loads * self.column_bytes
        fitting = (self.scratchpad_bytes - start) // size
        return Ring(start, max(0, min(fitting, max(2, _MOST_LOADS // loads))), size)

    @property
    def _lines(self) -> list[tuple[int, int]]:
        """Slice and row of each line."""
        rows = range(self.shape.out_height)
        return [(piece, row) for piece in range(self.source.slices) for row in rows]

    @property
    def _parts(self) -> list[int]:
        return part_sizes(len(self._lines), self.sharers, fixed=_HEADER_WORDS, each=_LINE_WORDS)

    @property
    def declared(self) -> Declared:
        """The memory that is fixed with the layer: the parameter block, and what follows up to the
        biases, where an engine may read a word beyond its last line."""
        return Declared(
            constants=(Span(self.parameters, self.bias - self.parameters),), slots=self.sharers
        )

    @property
    def constants(self) -> int:
        """Address of threshold and reciprocal."""
        return self._block_end

    @property
    def bias(self) -> int:
        """Address of the biases, slice after slice."""
        return self.constants + COLUMN_BYTES

    @property
    def end(self) -> int:
        """First byte after all data that this layout adds to the maps."""
        size = self.source.slices * self.source.depth * ELEMENT_BYTES
        return round_up(self.bias + size, COLUMN_BYTES)

    def store(self, memory: Writable, bias: Elements | None = None, *, relu: bool = False) -> None:
        """Put all but the maps into ``memory``.

        Parameters:
            bias: an element for each channel if the layer is biased, else None.
            relu: negative outputs become 0.

        Raises:
            KernelError: a bias of another shape, or none where one is needed or the reverse.
            isa.image.ImageError: the layout lies outside the memory.
        """
        shape, source = self.shape, self.source
        if (bias is not None) != self.biased:
            raise KernelError(f"bias must be {'given' if self.biased else 'None'} for this layout")
        if bias is not None:
            bias = check_elements("bias", bias, (shape.channels,))
            filled = np.pad(bias, (0, source.slices * source.depth - shape.channels))
            memory.write(self.bias, filled.astype(ELEMENT).tobytes())
        constants = np.array([0 if relu else LOWEST, shape.reciprocal if shape.scaled else 0])
        memory.write(self.constants, constants.astype(ELEMENT).tobytes().ljust(COLUMN_BYTES, b"\0"))
        block = self.block(self.parameters)
        memory.write(self.parameters, block.ljust(self.constants - self.parameters, b"\0"))

    def block(self, address: int) -> bytes:
        """The parameter block, for ``address``; see
        :meth:`microkernels.nn.conv_layout.ConvLayout.block`."""
        shape, source = self.shape, self.source
        words = []
        for member, size in enumerate(self._parts):
            lines = self._lines[member :: self.sharers]
            part = [len(lines), self.constants]
            for piece, row in lines:
                channel = piece * source.depth
                top = row * shape.step_down - shape.padding
                part.append(source.address(-shape.padding, top, channel))
                part.append(self.target.address(0, row, channel))
                part.append(self.bias + channel * ELEMENT_BYTES)
            words.append(part + [0] * (size - len(part)))
        return block_bytes(address, words)
