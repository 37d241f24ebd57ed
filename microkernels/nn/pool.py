"""Pooling and the completion of partial sums: sizes, golden model, layout and kernel.

An output is computed from the maps of all *segments* (partial sums of a convolution; one for plain
pooling): they are added element by element, combined over a window by maximum or mean, then the
bias is added, and with ReLU negative values become 0 (thesis section 6.2). Without a bias, with
one segment, this is a pooling layer; with a window of one pixel it completes a convolution.

A mean is the saturating sum of the window times :meth:`PoolShape.reciprocal`, which has
:data:`MEAN_FRACTION` fraction bits: exact to half a unit of the last place plus 2**-16 of the sum,
as long as the sum stays within 16 bits.

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

The program is generated for one layer. Memory is the limit, so a ring of windows is in flight while
the vector unit combines one window: segments, then columns, then rows, bias and threshold. Where an
instruction would read the result of another one too early, a ``v.drain`` separates the two; one
more completes each output before it is stored and its slot is reloaded.

The code for a window's columns is unrolled. Where such a program does not fit the instruction
buffer, or no window the scratchpad, a loop combines a column in each turn, with a ring of columns
in flight. As the sum of the columns before is an operand, its ``v.drain`` takes most of a turn in
both forms.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from isa.declared import Declared, Span
from isa.program import Program
from isa.table import MAX_VL
from isa.timing import RANGE_BYTES, WORD_BYTES
from microkernels.common.block_layout import BlockLayout
from microkernels.common.builder import (
    DEFAULT_SCRATCHPAD,
    INSTRUCTION_WORDS,
    KernelBuilder,
    launch_registers,
)
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, FeatureMap, StripMap, round_up
from microkernels.common.fixed_point import (
    ELEMENT,
    ELEMENT_BYTES,
    LOWEST,
    Elements,
    add,
    check_elements,
    multiply,
)
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import block_bytes, part_sizes

__all__ = [
    "MEAN_FRACTION",
    "PoolLayout",
    "PoolShape",
    "Ring",
    "pool",
    "pool_program",
    "window_fits",
]

#: Fraction bits of the reciprocal of a window's pixels.
MEAN_FRACTION = 15


@dataclass(frozen=True, kw_only=True)
class PoolShape:
    """Sizes of a pooling layer.

    Attributes:
        width, height, channels: of a map, at least 1 each.
        window: pixels across and down, at least 1.
        stride: pixels from window to window, at least 1.
        window_down, stride_down: the same downwards, if it is another than across; else None.
        padding: pixels around the map, less than ``window``. Their value is the lowest element for
            a maximum, and 0 for a mean, which includes them.
        mean: combine by mean instead of maximum.
        segments: maps to add, at least 1.

    Raises:
        KernelError: a value outside its range, a window larger than the padded map, or a mean of
            more than 65,536 pixels, whose reciprocal would be 0.
    """

    width: int
    height: int
    channels: int
    window: int = 2
    stride: int = 2
    padding: int = 0
    mean: bool = False
    segments: int = 1
    window_down: int | None = None
    stride_down: int | None = None

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("width", "height", "channels", "window", "stride", "segments"):
            CHECK.at_least(name, getattr(self, name), 1)
        for name in ("window_down", "stride_down"):
            CHECK.at_least(name, getattr(self, name) or 1, 1)
        if not 0 <= self.padding < self.window:
            raise KernelError(f"padding must be from 0 to {self.window - 1}, not {self.padding}")
        if self.segments > 1 and self.padding:
            raise KernelError("maps of several segments can't be padded: padding would be added")
        around = 2 * self.padding
        if self.window > self.width + around or self.down > self.height + around:
            size = self.window if self.window == self.down else f"{self.window} x {self.down}"
            raise KernelError(
                f"a window of {size} does not fit a map of {self.width} x {self.height} "
                f"pixels with {self.padding} pixels around it"
            )

        if self.scaled and not self.reciprocal:
            raise KernelError(
                f"a mean is of at most {2 << MEAN_FRACTION:,} pixels, not "
                f"{self.window} x {self.down}"
            )

    @property
    def down(self) -> int:
        """Pixels down of a window."""
        return self.window_down or self.window

    @property
    def step_down(self) -> int:
        """Pixels from a window to the one below."""
        return self.stride_down or self.stride

    @property
    def out_width(self) -> int:
        """Pixels across of the output."""
        return (self.width + 2 * self.padding - self.window) // self.stride + 1

    @property
    def out_height(self) -> int:
        """Pixels down of the output."""
        return (self.height + 2 * self.padding - self.down) // self.step_down + 1

    @property
    def scaled(self) -> bool:
        """Sums of windows are multiplied with :attr:`reciprocal`."""
        return self.mean and self.window * self.down > 1

    @property
    def reciprocal(self) -> int:
        """One pixel's share of a window, with :data:`MEAN_FRACTION` fraction bits."""
        pixels = self.window * self.down
        return ((1 << MEAN_FRACTION) + pixels // 2) // pixels

    @property
    def around(self) -> int:
        """Value of the pixels around the map."""
        return 0 if self.mean else LOWEST


def pool(
    shape: PoolShape, maps: Elements, bias: Elements | None = None, *, relu: bool = False
) -> Elements:
    """Golden model of the pooling kernel, bit-exact.

    Parameters:
        maps: segments x height x width x channels elements.
        bias: an element for each channel; None: none is added.
        relu: negative outputs become 0.

    Returns:
        out_height x out_width x channels elements.

    Raises:
        KernelError: an array of another shape, or values beyond 16 bits.
    """
    size = (shape.segments, shape.height, shape.width, shape.channels)
    maps = check_elements("maps", maps, size)
    total: Elements = maps[0]
    for segment in maps[1:]:
        total = add(total, segment)
    edge = (shape.padding, shape.padding)
    total = np.pad(total, (edge, edge, (0, 0)), constant_values=shape.around)
    combine = add if shape.mean else np.maximum
    sides = (
        (1, shape.out_width, shape.stride, shape.window),
        (0, shape.out_height, shape.step_down, shape.down),
    )
    for axis, count, stride, window in sides:
        starts = np.arange(count) * stride
        combined = total.take(starts, axis)
        for step in range(1, window):
            combined = combine(combined, total.take(starts + step, axis))
        total = combined
    if shape.scaled:
        total = multiply(total, np.array(shape.reciprocal), MEAN_FRACTION)
    if bias is not None:
        total = add(total, check_elements("bias", bias, (shape.channels,)))
    if relu:
        total = np.maximum(total, 0)
    return total


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


@CHECK.arguments
@lru_cache(maxsize=64)
def pool_program(layout: PoolLayout, *, vault_bits: int | None = None) -> Program:
    """The program of a pooling layer with these sizes and addresses.

    Parameters:
        vault_bits: address bits of a vault, where the start register ``parameters`` is an address
            within it (:meth:`microkernels.common.builder.KernelBuilder.start`).
    """
    shape = layout.shape
    name = f"pool_{shape.window}x{shape.window}x{shape.channels}x{shape.segments}.s"
    if layout.windows.slots:
        program = _Unrolled(layout, vault_bits).build().program(name)
        if len(program.words) <= layout.instruction_words or not layout.columns.slots:
            return program
    return _Looped(layout, vault_bits).build().program(name)


class _PoolKernel(ABC):
    """What both forms of the kernel have."""

    def __init__(self, layout: PoolLayout, vault_bits: int | None, ring: Ring) -> None:
        self.layout = layout
        self.vault_bits = vault_bits
        self.slots = ring
        shape = layout.shape
        what = "mean" if shape.mean else "maximum"
        self.writer = w = KernelBuilder(
            f"Pooling: {shape.width} x {shape.height} x {shape.channels}, {what} of "
            f"{shape.window} x {shape.down}, stride {shape.stride}, {shape.segments} "
            "segment(s); thesis section 6.2.",
            "Generated by microkernels.nn.pool, which explains it.",
            "",
            f"Scratchpad ({ring.end} bytes)",
            f"  {0:>4} threshold, reciprocal",
            f"  {layout.bias_place:>4} bias" if layout.biased else "       no bias",
            f"  {layout.outputs:>4} two outputs",
            *self._places(),
            f"  {ring.start:>4} ring of {ring.slots} slots of {ring.slot_bytes} bytes",
            launch=launch_registers(vault_bits),
            place_drains=True,
        )
        reg = w.register
        self.lines = reg("lines", "lines left")
        self.constants = reg("constants", "address of threshold and reciprocal")
        self.described = reg("described", "address of the next line's description")
        self.next_out = reg("next_out", "next line: address of its first output")
        self.next_bias = reg("next_bias", "next line: address of its biases")
        self.out = reg("out", "address of the output")
        self.left = reg("left", "outputs left in the line")
        self.slot = reg("use", "slot in use")
        self.made = reg("made", "output in the scratchpad")
        self.other = reg("other", "the other one")
        self._registers()
        self.fill = reg("load_slot", "slot to load next")
        self.a = reg("a", "for the moment")
        self.b = reg("b", "likewise")
        self.c = reg("c", "likewise")
        self.threshold = w.constant("threshold", 0, "threshold")
        self.reciprocal = w.constant("reciprocal", ELEMENT_BYTES, "reciprocal")
        self.bias = w.constant("bias", layout.bias_place, "bias")
        self.ring = w.constant("ring", ring.start, "ring")
        self.ring_end = w.constant("ring_end", ring.end, "its end")
        self.column = w.constant("column", layout.column, "elements of a column")
        self.depth = w.constant("depth", layout.source.depth, "elements of a pixel")
        self.combine = "v.v.add" if shape.mean else "v.v.max"

    def build(self) -> KernelBuilder:
        """The whole program."""
        w, layout = self.writer, self.layout
        w.start((self.lines, self.constants), self.described, vault_bits=self.vault_bits)
        with w.unless("beq", self.lines, w.zero):
            w.op("li", self.a, 2)
            w.load(self.threshold, self.constants, self.a, note="threshold, reciprocal")
            w.op("li", self.a, MEAN_FRACTION)
            w.op("set.fx", self.a)
            w.op("li", self.made, layout.outputs)
            w.op("li", self.other, layout.outputs + layout.depth_bytes)
            self._begin()
            w.note("A line.")
            with w.loop("line", self.lines):
                self._begin_line()
                w.op("li", self.left, layout.shape.out_width)
                w.note("An output.")
                w.label("output")
                self._output()
                w.op("bne", self.left, w.zero, "output")
        w.op("halt")
        return w

    def _places(self) -> tuple[str, ...]:
        """Text on further places in the scratchpad."""
        return ()

    @abstractmethod
    def _registers(self) -> None:
        """Allocate the registers for loads."""

    @abstractmethod
    def _begin(self) -> None:
        """Code before the first line."""

    @abstractmethod
    def _begin_line(self) -> None:
        """Set the address of the line's first output, and load its biases."""

    @abstractmethod
    def _output(self) -> None:
        """Make an output, and decrement the number of those left."""

    def _read(self) -> None:
        """Read where a line's outputs and biases are."""
        w = self.writer
        w.read(self.next_out, self.described)
        w.read(self.next_bias, self.described)

    def _load_bias(self) -> None:
        w = self.writer
        w.op("mov", self.out, self.next_out)
        if self.layout.biased:
            w.load(self.bias, self.next_bias, self.depth, note="bias")

    def _load_column(self, slot: str, base: str, note: str) -> None:
        """Load a column in all segments, from ``base`` on, which is spoilt; advance ``slot``."""
        w, layout = self.writer, self.layout
        for segment in range(layout.shape.segments):
            w.load(slot, base, self.column, note=f"{note}segment {segment}")
            w.offset(slot, slot, layout.column_bytes)
            if segment + 1 < layout.shape.segments:
                w.offset(base, base, layout.segment_step)

    def _store(self, place: str) -> None:
        """Make the output of combined columns at ``place``, and store it."""
        w, layout, shape = self.writer, self.layout, self.layout.shape
        w.op("set.vl", self.depth)
        pixel = layout.source.depth * ELEMENT_BYTES
        for down in range(1, shape.down):
            w.offset(self.b, place, down * pixel)
            w.vector(self.combine, place, place, self.b)
        if shape.scaled:
            w.vector("v.s.mul", place, place, self.reciprocal, note="mean")
        if layout.biased:
            w.vector("v.v.add", place, place, self.bias, note="bias")
        w.vector("v.s.max", self.made, place, self.threshold, note="raise to the threshold")
        w.op("v.drain")
        w.store(self.out, self.made, self.depth)

    def _next_output(self) -> None:
        w = self.writer
        w.swap(self.made, self.other, self.a)
        w.offset(self.out, self.out, self.layout.target.x_step)


class _Unrolled(_PoolKernel):
    """The kernel with code for each column of a window."""

    def __init__(self, layout: PoolLayout, vault_bits: int | None) -> None:
        super().__init__(layout, vault_bits, layout.windows)

    def _registers(self) -> None:
        reg = self.writer.register
        self.ahead = reg("ahead", "address of the description of the line to load next")
        self.next_from = reg("next_from", "that line: address of its first window")
        self.load_lines = reg("load_lines", "lines left to load")
        self.load_left = reg("load_left", "windows left to load in the line")
        self.load_from = reg("load_from", "address of the next window")

    def _begin(self) -> None:
        w = self.writer
        w.note("Fill the ring.")
        w.op("mov", self.ahead, self.described)
        w.op("mov", self.load_lines, self.lines)
        self._next_from()
        self._begin_load_line()
        w.op("mov", self.fill, self.ring)
        w.op("li", self.c, self.slots.slots)
        w.label("fill")
        self._load("fill")
        w.op("sub", self.c, self.c, 1)
        w.op("bne", self.c, w.zero, "fill")
        w.op("mov", self.slot, self.ring)
        self._describe()

    def _begin_line(self) -> None:
        self._load_bias()
        self._describe()

    def _describe(self) -> None:
        w = self.writer
        w.op("add", self.described, self.described, WORD_BYTES)
        self._read()

    def _next_from(self) -> None:
        w = self.writer
        w.read(self.next_from, self.ahead)
        w.op("add", self.ahead, self.ahead, 2 * WORD_BYTES)

    def _begin_load_line(self) -> None:
        w = self.writer
        w.op("mov", self.load_from, self.next_from)
        self._next_from()
        w.op("li", self.load_left, self.layout.shape.out_width)

    def _load(self, name: str) -> None:
        """Load the next window, if there is one, in all segments into the next slot."""
        w, layout, shape = self.writer, self.layout, self.layout.shape
        done = f"{name}_done"
        w.op("beq", self.load_lines, w.zero, done)
        w.op("mov", self.a, self.fill)
        for across in range(shape.window):
            w.offset(self.b, self.load_from, across * layout.source.x_step)
            self._load_column(self.a, self.b, f"column {across}, ")
        w.offset(self.load_from, self.load_from, shape.stride * layout.source.x_step)
        w.op("mov", self.fill, self.a)
        with w.unless("bne", self.fill, self.ring_end):
            w.op("mov", self.fill, self.ring)
        w.op("sub", self.load_left, self.load_left, 1)
        w.op("bne", self.load_left, w.zero, done)
        w.op("sub", self.load_lines, self.load_lines, 1)
        self._begin_load_line()
        w.label(done)

    def _output(self) -> None:
        w, layout, shape = self.writer, self.layout, self.layout.shape
        columns = [
            [
                (across * shape.segments + segment) * layout.column_bytes
                for segment in range(shape.segments)
            ]
            for across in range(shape.window)
        ]
        if shape.segments > 1 or shape.window > 1 or shape.down > 1:
            w.op("set.vl", self.column)
        for segment in range(1, shape.segments):
            for column in columns:
                self._combine("v.v.add", column[0], column[segment])
        for column in columns[1:]:
            self._combine(self.combine, 0, column[0])
        self._store(self.slot)
        self._load("next")
        self._next_output()
        w.advance_ring(self.slot, self.slots.slot_bytes, self.ring, self.ring_end)
        w.op("sub", self.left, self.left, 1)

    def _combine(self, mnemonic: str, result: int, other: int) -> None:
        """Combine two places of the slot in use, with the result in the first."""
        w = self.writer
        first = self.slot
        if result:
            first = self.a
            w.offset(first, self.slot, result)
        w.offset(self.b, self.slot, other)
        w.vector(mnemonic, first, first, self.b)


class _Looped(_PoolKernel):
    """The kernel with a loop over the columns of a window."""

    def __init__(self, layout: PoolLayout, vault_bits: int | None) -> None:
        super().__init__(layout, vault_bits, layout.columns)
        self.combined = self.writer.constant("combined", layout.combined, "combined columns")

    def _places(self) -> tuple[str, ...]:
        return (f"  {self.layout.combined:>4} combined columns",)

    def _registers(self) -> None:
        reg = self.writer.register
        self.window = reg("window", "address of the window")
        self.columns = reg("columns", "columns left to combine")
        self.load_left = reg("load_left", "columns left to load")
        self.load_from = reg("load_from", "address of the next column")

    def _begin(self) -> None:
        """Nothing is in flight before the first line."""

    def _begin_line(self) -> None:
        self.writer.read(self.window, self.described)
        self._read()
        self._load_bias()

    def _load(self) -> None:
        """Load the next column into the next slot."""
        w = self.writer
        w.op("mov", self.b, self.load_from)
        self._load_column(self.fill, self.b, "")
        w.offset(self.load_from, self.load_from, self.layout.source.x_step)
        with w.unless("bne", self.fill, self.ring_end):
            w.op("mov", self.fill, self.ring)
        w.op("sub", self.load_left, self.load_left, 1)

    def _add_segments(self) -> None:
        w, layout = self.writer, self.layout
        for segment in range(1, layout.shape.segments):
            w.offset(self.b, self.slot, segment * layout.column_bytes)
            w.vector("v.v.add", self.slot, self.slot, self.b)

    def _next_slot(self) -> None:
        self.writer.advance_ring(self.slot, self.slots.slot_bytes, self.ring, self.ring_end)

    def _output(self) -> None:
        w, layout, shape = self.writer, self.layout, self.layout.shape
        w.op("mov", self.load_from, self.window)
        w.offset(self.window, self.window, shape.stride * layout.source.x_step)
        w.op("li", self.load_left, shape.window)
        w.op("mov", self.fill, self.ring)
        w.op("mov", self.slot, self.ring)
        w.op("li", self.c, self.slots.slots)
        w.label("fill")
        self._load()
        w.op("sub", self.c, self.c, 1)
        w.op("bne", self.c, w.zero, "fill")
        w.op("set.vl", self.column)
        self._add_segments()
        w.vector("v.v.max", self.combined, self.slot, self.slot, note="the first column")
        self._next_slot()
        w.op("li", self.columns, shape.window - 1)
        with w.loop("next_column", self.columns):
            w.op("v.drain")
            self._add_segments()
            w.vector(self.combine, self.combined, self.combined, self.slot)
            w.note("Into the slot of the column before, which has been read.")
            with w.unless("beq", self.load_left, w.zero):
                self._load()
            self._next_slot()
        self._store(self.combined)
        self._next_output()
        w.op("sub", self.left, self.left, 1)
