"""Layout and kernel of pooling, and of completing partial sums.

The scratchpad contains the threshold and the reciprocal, the bias, two outputs, and a ring of
*slots*: the windows of one output in all segments, column by column. If the program loops over a
window's columns, the sum so far and a ring of single columns replace them. All start at multiples
of :data:`isa.limits.RANGE_BYTES`.

The work is divided into *lines*: a row of outputs of one slice of the channels. A line's words are
the addresses of its first window in the first segment, of its first output and of its biases. The
constants are the threshold and the reciprocal.

The program is generated for one layer. It is memory-bound, so a ring of windows is in flight while
the vector unit combines one window: segments, then columns, then rows, bias and threshold. Where an
instruction would read another's result too early, a ``v.drain`` separates the two; another one
completes each output before it is stored and its slot is reloaded.

The code for a window's columns is unrolled. If such a program does not fit the instruction buffer,
or no window the scratchpad, a loop combines one column per iteration, with a ring of columns in
flight. As the previous columns' sum is an operand, its ``v.drain`` takes most of an iteration in
both forms.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from isa.limits import RANGE_BYTES
from isa.program import Declared, Program, Span
from isa.table import MAX_VL
from microkernels.common.builder import DEFAULT_SCRATCHPAD, INSTRUCTION_WORDS, WORD_BYTES
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES, round_up
from microkernels.common.fixed_point import (
    ELEMENT,
    ELEMENT_BYTES,
    NUMBERS,
    Elements,
    check_elements,
    packed,
)
from microkernels.common.memory import Writable
from microkernels.common.scratchpad_plan import ScratchpadPlan
from support.errors import counted

from .line import LineKernel, LineLayout, StreamKernel
from .window_shape import MEAN_FRACTION, PoolShape

#: Maximum loads in flight; the array range check has 20 entries.
_MOST_LOADS = 16


def _scratchpad(
    shape: PoolShape, depth: int, room: int, *, biased: bool, looped: bool
) -> ScratchpadPlan:
    """The scratchpad of ``room`` bytes for slices of ``depth`` channels, with a ring of windows,
    for each column that of each segment; for a loop with the combined columns so far, and a ring of
    columns."""
    pixel = depth * ELEMENT_BYTES
    column = round_up(shape.down * pixel, RANGE_BYTES)
    plan = ScratchpadPlan({"constants": 2 * ELEMENT_BYTES, "bias": biased * pixel})
    plan.take_each("outputs", 2, pixel)
    columns, most = shape.kernel, _MOST_LOADS
    if looped:
        plan.take("combined", column)
        columns, most = 1, shape.kernel
    loads = columns * shape.segments
    plan.take_ring(loads, column, most=min(most, max(2, _MOST_LOADS // loads)), room=room)
    return plan


def _fits(shape: PoolShape, depth: int, room: int, *, biased: bool, looped: bool) -> bool:
    """Whether a slice's column fits a vector, and a slot of the ring the scratchpad."""
    plan = _scratchpad(shape, depth, room, biased=biased, looped=looped)
    return shape.down * depth * packed(shape.bits) <= MAX_VL and plan.slots > 0


def window_fits(
    shape: PoolShape,
    depth: int,
    *,
    biased: bool = False,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> bool:
    """Whether slices of ``depth`` channels suit an engine: a window's column fits a vector, and a
    window the scratchpad. If no window of one channel fits, only a column needs to."""
    fits = partial(_fits, shape, room=scratchpad_bytes, biased=biased)
    looped = not fits(depth=1, looped=False)
    return fits(depth=depth, looped=looped)


@dataclass(frozen=True, kw_only=True)
class PoolLayout(LineLayout):
    """Addresses of a pooling layer; see the module's text.

    Attributes:
        shape: of the layer.
        source: the first segment's map; the others follow each other at ``segment_step`` bytes.
        segment_step: bytes from one segment to the next, a multiple of 2; 0 with one segment.
        biased: there is a bias.
        instruction_words: of the instruction buffer.

    Raises:
        KernelError: maps that do not fit the layer, windows that do not fit the scratchpad, or a
            value out of range.
    """

    line_words = 3

    shape: PoolShape
    segment_step: int = 0
    biased: bool = False
    instruction_words: int = INSTRUCTION_WORDS

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = self.shape
        self._check_maps(
            "pooling needs",
            (shape.width, shape.height, shape.channels),
            (shape.out_width, shape.out_height, shape.channels),
        )
        if self.source.padding < shape.padding:
            raise KernelError(
                f"source has {self.source.padding} pixels around it, the layer {shape.padding}"
            )
        if self.segment_step % ELEMENT_BYTES or self.segment_step < 0:
            raise KernelError(f"segment_step must be even and positive, not {self.segment_step}")
        most = MAX_VL // packed(shape.bits)
        if self.column > most:
            raise KernelError(
                f"a column of {shape.down} pixels of {self.source.depth} channels has "
                f"{self.column} elements, a vector at most {most}: give slices of at most "
                f"{most // shape.down} channels"
            )
        if self.windows.slots < 1 and self.columns.slots < 1:
            raise KernelError(
                f"a window of {shape.kernel} x {shape.down} pixels of {self.source.depth} "
                f"channels and {counted(shape.segments, 'segment')} does not fit a scratchpad of "
                f"{self.scratchpad_bytes} bytes: {self._fitting}"
            )

    @property
    def _fitting(self) -> str:
        """Suggestion for the error message: sizes that fit if the window is too large."""
        fits = partial(_fits, self.shape, room=self.scratchpad_bytes, biased=self.biased)
        for depth in range(self.source.depth - 1, 0, -1):
            if fits(depth=depth, looped=False) or fits(depth=depth, looped=True):
                return f"give slices of at most {depth} channels"
        return "no slice does"

    @property
    def column(self) -> int:
        """Elements per column of a window."""
        return self.shape.down * self.source.depth

    @cached_property
    def windows(self) -> ScratchpadPlan:
        """The scratchpad with a ring of windows."""
        return self._plan(looped=False)

    @cached_property
    def columns(self) -> ScratchpadPlan:
        """The scratchpad with the combined columns so far, and a ring of columns."""
        return self._plan(looped=True)

    def _plan(self, *, looped: bool) -> ScratchpadPlan:
        room, depth = self.scratchpad_bytes, self.source.depth
        return _scratchpad(self.shape, depth, room, biased=self.biased, looped=looped)

    @property
    def _lines(self) -> list[tuple[int, int]]:
        """Each line's slice and row."""
        rows = range(self.shape.out_height)
        return [(piece, row) for piece in range(self.source.slices) for row in rows]

    def _words(self, line: tuple[int, int]) -> list[int]:
        piece, row = line
        shape, channel = self.shape, piece * self.source.depth
        top = row * shape.step_down - shape.padding
        return [
            self.source.address(-shape.padding, top, channel),
            self.target.address(0, row, channel),
            self.bias + channel * ELEMENT_BYTES,
        ]

    @property
    def declared(self) -> Declared:
        """The memory that is fixed by the layer: the parameter block, and what follows up to the
        biases, where an engine may read one word beyond its last line."""
        return Declared(
            constants=(Span(self.parameters, self.bias - self.parameters),), slots=self.sharers
        )

    @property
    def bias(self) -> int:
        """Address of the biases, slice by slice."""
        return self.constants + COLUMN_BYTES

    @property
    def end(self) -> int:
        size = self.source.slices * self.source.depth * ELEMENT_BYTES
        return round_up(self.bias + size, COLUMN_BYTES)

    def store(self, memory: Writable, bias: Elements | None = None, *, relu: bool = False) -> None:
        """Write everything except the maps to ``memory``.

        Parameters:
            bias: one element per channel if the layer is biased, otherwise None.
            relu: negative outputs become 0.

        Raises:
            KernelError: a bias of another shape, a missing bias, or an unexpected one.
            isa.image.ImageError: the layout is outside the memory.
        """
        shape, source = self.shape, self.source
        if (bias is not None) != self.biased:
            raise KernelError(f"bias must be {'given' if self.biased else 'None'} for this layout")
        if bias is not None:
            bias = check_elements("bias", bias, (shape.channels,))
            filled = np.pad(bias, (0, source.slices * source.depth - shape.channels))
            memory.write(self.bias, filled.astype(ELEMENT).tobytes())
        number = NUMBERS[shape.bits]
        threshold = 0 if relu else np.iinfo(number).min
        constants = np.array([threshold, shape.reciprocal if shape.scaled else 0], number)
        memory.write(self.constants, constants.tobytes().ljust(COLUMN_BYTES, b"\0"))
        block = self.block(self.parameters)
        memory.write(self.parameters, block.ljust(self.constants - self.parameters, b"\0"))

    def generate(self, vault_bits: int | None) -> Program:
        shape = self.shape
        name = f"pool_{shape.kernel}x{shape.kernel}x{shape.channels}x{shape.segments}.s"
        if self.windows.slots:
            program = _Unrolled(self, vault_bits, self.windows).build().program(name)
            if len(program.words) <= self.instruction_words or not self.columns.slots:
                return program
        return _Looped(self, vault_bits, self.columns).build().program(name)


class _PoolKernel(LineKernel[PoolLayout]):
    """Code common to both forms of the kernel."""

    def __init__(self, layout: PoolLayout, vault_bits: int | None, plan: ScratchpadPlan) -> None:
        self.plan = plan
        shape = layout.shape
        super().__init__(
            layout,
            vault_bits,
            f"Pooling: {shape.width} x {shape.height} x {shape.channels}, "
            f"{'mean' if shape.mean else 'maximum'} of {shape.kernel} x {shape.down}, stride "
            f"{shape.stride}, {counted(shape.segments, 'segment')}; thesis section 6.2.",
            plan,
            bits=shape.bits,
        )
        w = self.writer
        reg = w.register
        self.constants = reg("constants", "address of threshold and reciprocal")
        self.described = reg("described", "address of the next line's description")
        self.next_out = reg("next_out", "next line: address of its first output")
        self.next_bias = reg("next_bias", "next line: address of its biases")
        self.out = reg("out", "address of the output")
        self.left = reg("left", "outputs left in the line")
        self.slot = reg("use", "slot in use")
        self.result = reg("result", "output in the scratchpad")
        self.stored = reg("stored", "output that is stored")
        self._registers()
        self.fill = reg("load_slot", "slot to load next")
        self.tmp = reg("tmp", "temporary")
        self.tmp1 = reg("tmp1", "temporary")
        self.tmp2 = reg("tmp2", "temporary")
        self.threshold = w.constant("threshold", 0, "threshold")
        self.reciprocal = w.constant("reciprocal", ELEMENT_BYTES, "reciprocal")
        self.bias = w.constant("bias", plan["bias"], "bias")
        self.ring = w.constant("ring", plan.ring, "ring")
        self.ring_end = w.constant("ring_end", plan.used, "its end")
        column, depth = layout.column, layout.source.depth
        self.column = w.constant("column", column * self.packed, "numbers of a column")
        self.depth = w.constant("depth", depth * self.packed, "numbers of a pixel")
        self.combine = "v.v.add" if shape.mean else "v.v.max"

    def _begin(self) -> None:
        w = self.writer
        w.op("li", self.tmp, 2)
        w.load(self.threshold, self.constants, self.tmp, note="threshold, reciprocal")
        self._set("fx", MEAN_FRACTION)
        w.op("li", self.result, self.plan["outputs0"])
        w.op("li", self.stored, self.plan["outputs1"])

    def _line(self) -> None:
        w = self.writer
        self._begin_line()
        w.op("li", self.left, self.layout.shape.out_width)
        w.note("An output.")
        w.label("output")
        self._output()
        w.op("bne", self.left, w.zero, "output")

    @abstractmethod
    def _registers(self) -> None:
        """Allocate the registers for loads."""

    @abstractmethod
    def _begin_line(self) -> None:
        """Set the address of the line's first output, and load its biases."""

    @abstractmethod
    def _output(self) -> None:
        """Compute an output, and decrement the number of those left."""

    def _read(self) -> None:
        """Read the addresses of a line's outputs and biases."""
        w = self.writer
        w.read(self.next_out, self.described)
        w.read(self.next_bias, self.described)

    def _load_bias(self) -> None:
        w = self.writer
        w.op("mov", self.out, self.next_out)
        if self.layout.biased:
            w.load(self.bias, self.next_bias, self.depth, note="bias")

    def _load_column(self, slot: str, base: str, note: str) -> None:
        """Load a column in all segments from ``base``, which is overwritten; advance ``slot``."""
        w, layout = self.writer, self.layout
        for segment in range(layout.shape.segments):
            w.load(slot, base, self.column, note=f"{note}segment {segment}")
            w.offset(slot, slot, self.plan.vector)
            if segment + 1 < layout.shape.segments:
                w.offset(base, base, layout.segment_step)

    def _store(self, place: str) -> None:
        """Compute the output from the combined columns at ``place``, and store it."""
        w, layout, shape = self.writer, self.layout, self.layout.shape
        w.op("set.vl", self.depth)
        pixel = layout.source.depth * ELEMENT_BYTES
        for down in range(1, shape.down):
            w.offset(self.tmp1, place, down * pixel)
            w.vector(self.combine, place, place, self.tmp1)
        if shape.scaled:
            w.vector("v.s.mul", place, place, self.reciprocal, note="mean")
        if layout.biased:
            w.vector("v.v.add", place, place, self.bias, note="bias")
        w.vector("v.s.max", self.result, place, self.threshold, note="raise to the threshold")
        w.op("v.drain")
        w.store(self.out, self.result, self.depth)

    def _next_output(self) -> None:
        w = self.writer
        w.swap(self.result, self.stored, self.tmp)
        w.offset(self.out, self.out, self.layout.target.x_step)


class _Unrolled(_PoolKernel, StreamKernel[PoolLayout]):
    """The kernel with code for each column of a window."""

    def _registers(self) -> None:
        reg = self.writer.register
        self.ahead = reg("ahead", "address of the description of the line to load next")
        self.next_from = [reg("next_from", "that line: address of its first window")]
        self.load_lines = reg("load_lines", "lines left to load")
        self.load_left = reg("load_left", "windows left to load in the line")
        self.load_from = [reg("load_from", "address of the next window")]

    def _begin(self) -> None:
        super()._begin()
        self.writer.op("mov", self.ahead, self.described)
        self._begin_stream()
        self._fill_ring(self.plan.slots, self.tmp2)
        self._describe()

    def _begin_line(self) -> None:
        self._load_bias()
        self._describe()

    def _describe(self) -> None:
        w = self.writer
        w.op("add", self.described, self.described, WORD_BYTES)
        self._read()

    @property
    def _line_loads(self) -> int:
        return self.layout.shape.out_width

    def _load(self, name: str) -> None:
        """Load the next window, if any, in all segments into the next slot."""
        w, layout, shape = self.writer, self.layout, self.layout.shape
        (load_from,) = self.load_from
        done = f"{name}_done"
        w.op("beq", self.load_lines, w.zero, done)
        w.op("mov", self.tmp, self.fill)
        for across in range(shape.kernel):
            w.offset(self.tmp1, load_from, across * layout.source.x_step)
            self._load_column(self.tmp, self.tmp1, f"column {across}, ")
        w.offset(load_from, load_from, shape.stride * layout.source.x_step)
        w.op("mov", self.fill, self.tmp)
        with w.unless("bne", self.fill, self.ring_end):
            w.op("mov", self.fill, self.ring)
        w.op("sub", self.load_left, self.load_left, 1)
        w.op("bne", self.load_left, w.zero, done)
        w.op("sub", self.load_lines, self.load_lines, 1)
        self._begin_load_line()
        w.label(done)

    def _output(self) -> None:
        w, shape = self.writer, self.layout.shape
        columns = [
            [
                (across * shape.segments + segment) * self.plan.vector
                for segment in range(shape.segments)
            ]
            for across in range(shape.kernel)
        ]
        if shape.segments > 1 or shape.kernel > 1 or shape.down > 1:
            w.op("set.vl", self.column)
        for segment in range(1, shape.segments):
            for column in columns:
                self._combine("v.v.add", column[0], column[segment])
        for column in columns[1:]:
            self._combine(self.combine, 0, column[0])
        self._store(self.slot)
        self._load("next")
        self._next_output()
        w.advance_ring(self.slot, self.plan.slot, self.ring, self.ring_end)
        w.op("sub", self.left, self.left, 1)

    def _combine(self, mnemonic: str, result: int, other: int) -> None:
        """Combine two places of the current slot, with the result in the first."""
        w = self.writer
        first = self.slot
        if result:
            first = self.tmp
            w.offset(first, self.slot, result)
        w.offset(self.tmp1, self.slot, other)
        w.vector(mnemonic, first, first, self.tmp1)


class _Looped(_PoolKernel):
    """The kernel with a loop over the columns of a window."""

    def __init__(self, layout: PoolLayout, vault_bits: int | None, plan: ScratchpadPlan) -> None:
        super().__init__(layout, vault_bits, plan)
        self.combined = self.writer.constant("combined", plan["combined"], "combined columns")

    def _registers(self) -> None:
        reg = self.writer.register
        self.window = reg("window", "address of the window")
        self.columns = reg("columns", "columns left to combine")
        self.load_left = reg("load_left", "columns left to load")
        self.load_from = reg("load_from", "address of the next column")

    def _begin_line(self) -> None:
        self.writer.read(self.window, self.described)
        self._read()
        self._load_bias()

    def _load(self) -> None:
        """Load the next column into the next slot."""
        w = self.writer
        w.op("mov", self.tmp1, self.load_from)
        self._load_column(self.fill, self.tmp1, "")
        w.offset(self.load_from, self.load_from, self.layout.source.x_step)
        with w.unless("bne", self.fill, self.ring_end):
            w.op("mov", self.fill, self.ring)
        w.op("sub", self.load_left, self.load_left, 1)

    def _add_segments(self) -> None:
        w, layout = self.writer, self.layout
        for segment in range(1, layout.shape.segments):
            w.offset(self.tmp1, self.slot, segment * self.plan.vector)
            w.vector("v.v.add", self.slot, self.slot, self.tmp1)

    def _next_slot(self) -> None:
        self.writer.advance_ring(self.slot, self.plan.slot, self.ring, self.ring_end)

    def _output(self) -> None:
        w, layout, shape = self.writer, self.layout, self.layout.shape
        w.op("mov", self.load_from, self.window)
        w.offset(self.window, self.window, shape.stride * layout.source.x_step)
        w.op("li", self.load_left, shape.kernel)
        w.op("mov", self.fill, self.ring)
        w.op("mov", self.slot, self.ring)
        w.op("li", self.tmp2, self.plan.slots)
        w.label("fill")
        self._load()
        w.op("sub", self.tmp2, self.tmp2, 1)
        w.op("bne", self.tmp2, w.zero, "fill")
        w.op("set.vl", self.column)
        self._add_segments()
        w.vector("v.v.max", self.combined, self.slot, self.slot, note="the first column")
        self._next_slot()
        w.op("li", self.columns, shape.kernel - 1)
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
