"""Softmax and normalisations of rows: layout and kernel.

Both maps have one slice, so the rows of a column of pixels are consecutive in memory. The work is
divided into *blocks* of rows; if they do not divide a column evenly, the last block overlaps the
previous one. The engines take turns on the blocks.

The scratchpad contains the constants, the block, for softmax a place for a *chunk* of the block,
which is the longest vector of whole rows that divides it, and data per row: an element, sums by
level and four 32-bit numbers; the upper halves of the sums are zero. If a row has several segments,
a chunk is one of them, and each has a place for an element.

A block's words are the addresses of its rows and of its outputs.

The program's arithmetic is that of :func:`microkernels.nn.rows_shape.normalize`, which explains it.
A block of rows is computed in place. Data per row, such as its factor, is computed for all rows of
the block at once, in vectors of 32-bit numbers. A row with several segments is computed segment by
segment; its sums and its largest element come from those of the segments.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from isa.limits import RANGE_BYTES
from isa.program import Program
from isa.table import MAX_MR, MAX_VL
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES, even_parts, part_starts, round_up
from microkernels.common.fixed_point import ELEMENT, ELEMENT_BYTES, WIDE
from microkernels.common.memory import Writable
from microkernels.common.scratchpad_plan import ScratchpadPlan

from .curves import UNIT_FRACTION
from .line import LineKernel, LineLayout
from .rows_shape import NormalizeShape, exponential_steps, factor_steps

WIDE_BYTES = WIDE.itemsize
#: 32-bit numbers per row besides its sums.
_NUMBERS = 4
_LANES = 4
#: For estimates: minimum cycles of a step on data per row, and cycles of a block's transfers.
_STEP = 24
_BLOCK = 300


def _rounded(size: int) -> int:
    return round_up(size, RANGE_BYTES)


def _scratchpad(shape: NormalizeShape, rows: int, chunk: int) -> ScratchpadPlan:
    levels = len(shape.scale.shifts)
    count, segment = len(shape.segments), shape.segments[0][1]
    return ScratchpadPlan(
        {
            "narrow": len(_narrow(shape)) * ELEMENT_BYTES,
            "wide": len(shape.scale.constants) * WIDE_BYTES,
            "sums": levels * rows * WIDE_BYTES,
            "rows": rows * shape.channels * ELEMENT_BYTES,
            "chunk": chunk * segment * ELEMENT_BYTES if shape.operation == "softmax" else 0,
            "parts": count * ELEMENT_BYTES if count > 1 else 0,
            "elements": rows * ELEMENT_BYTES,
            "numbers": _NUMBERS * _rounded(rows * WIDE_BYTES),
        }
    )


def _narrow(shape: NormalizeShape) -> list[int]:
    """16-bit constants: the pair that picks lower halves, scalars, and the vector of sums."""
    segment = shape.segments[0][1]
    if shape.operation == "softmax":
        return [1, 0, *shape.scalars, *[1] * segment]
    if shape.operation == "layer":
        return [1, 0, *[shape.mean[0]] * segment]
    return [1, 0]


@lru_cache(maxsize=256)
def plan_rows(
    shape: NormalizeShape, *, sharers: int, scratchpad_bytes: int = DEFAULT_SCRATCHPAD
) -> tuple[float, int, int]:
    """The division with the fewest predicted cycles: these, rows per block, and rows per chunk.

    Parameters:
        sharers: number of engines, at least 1.

    Raises:
        KernelError: the scratchpad is too small for a row.
    """
    cuts = _cuts(shape, sharers, scratchpad_bytes)
    fastest = min(cuts, key=lambda cut: cut[0], default=None)
    if fastest is None:
        raise KernelError(
            f"{shape.operation} of rows of {shape.channels} elements needs a scratchpad of "
            f"{_scratchpad(shape, 1, 1).used} bytes, not {scratchpad_bytes}"
        )
    return fastest


def _cuts(
    shape: NormalizeShape, sharers: int, scratchpad_bytes: int
) -> Iterator[tuple[float, int, int]]:
    """The divisions that fit, as for :func:`plan_rows`."""
    soft = shape.operation == "softmax"
    levels = len(shape.scale.shifts)
    beats = -(-shape.channels // _LANES)
    steps = 8 * levels + (4 if shape.scale.root else 3) * shape.scale.rounds + 8
    for rows in even_parts(shape.height, MAX_MR):
        count = -(-shape.height // rows)
        limit = min(max(MAX_VL // shape.channels, 1), rows)
        chunk = max(divisor for divisor in range(1, limit + 1) if rows % divisor == 0)
        if _scratchpad(shape, rows, chunk).used > scratchpad_bytes:
            break
        blocks = -(-shape.width * count // sharers)
        block_cycles = (levels + 3) * rows * max(beats, 10)
        if soft:
            chunks = rows // chunk
            vector = max(-(-chunk * shape.channels // _LANES), 14)
            block_cycles += (10 + 3 * shape.squarings) * chunks * vector
        block_cycles += steps * max(rows, _STEP) + _BLOCK + rows * beats * 2 * sharers
        yield float(blocks * block_cycles), rows, chunk


@dataclass(frozen=True, kw_only=True)
class RowsLayout(LineLayout):
    """Addresses of a layer that normalises rows; see the module's text.

    Attributes:
        shape: of the layer.

    Raises:
        KernelError: maps that do not fit the layer or have several slices, a scratchpad that is too
            small, or a value out of range.
    """

    shape: NormalizeShape

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = self.shape
        size = (shape.width, shape.height, shape.channels)
        self._check_maps(f"{shape.operation} needs", size, size, one_slice=True)
        _ = self._cut

    @property
    def _cut(self) -> tuple[float, int, int]:
        return plan_rows(self.shape, sharers=self.sharers, scratchpad_bytes=self.scratchpad_bytes)

    @property
    def rows(self) -> int:
        """Rows per block."""
        return self._cut[1]

    @property
    def chunk(self) -> int:
        """Rows per chunk."""
        return self._cut[2]

    @cached_property
    def places(self) -> ScratchpadPlan:
        """Places in the scratchpad."""
        return _scratchpad(self.shape, self.rows, self.chunk)

    @property
    def number_bytes(self) -> int:
        """Bytes from a 32-bit number of all rows to the next one."""
        return _rounded(self.rows * WIDE_BYTES)

    @property
    def constant_elements(self) -> int:
        """Elements of all constants in memory, including the zeros above the sums."""
        return self.places["rows"] // ELEMENT_BYTES

    # Memory.

    @property
    def _lines(self) -> list[tuple[int, int]]:
        """Each block's column and first row."""
        starts = part_starts(self.shape.height, self.rows)
        return [(x, row) for x in range(self.shape.width) for row in starts]

    def _words(self, line: tuple[int, int]) -> list[int]:
        return [feature_map.address(*line) for feature_map in self.maps.values()]

    @property
    def end(self) -> int:
        return round_up(self.constants + self.places["rows"], COLUMN_BYTES)

    def store(self, memory: Writable) -> None:
        """Write everything except the maps to ``memory``.

        Raises:
            isa.image.ImageError: the layout is outside the memory.
        """
        constants = bytearray(self.places["rows"])
        narrow = np.array(_narrow(self.shape), ELEMENT).tobytes()
        wide = np.array(self.shape.scale.constants, WIDE).tobytes()
        constants[: len(narrow)] = narrow
        constants[self.places["wide"] : self.places["wide"] + len(wide)] = wide
        self._store_fixed(memory, bytes(constants))

    def generate(self, vault_bits: int | None) -> Program:
        shape = self.shape
        name = f"{shape.operation}_{shape.width}x{shape.height}x{shape.channels}.s"
        return _RowsKernel(self, vault_bits).build().program(name)


class _RowsKernel(LineKernel[RowsLayout]):
    def __init__(self, layout: RowsLayout, vault_bits: int | None) -> None:
        self.shape = shape = layout.shape
        self.scale = shape.scale
        places = layout.places
        super().__init__(
            layout,
            vault_bits,
            f"{shape.operation} of {shape.rows} rows of {shape.channels} elements, "
            f"{layout.rows} at a time.",
            places,
        )
        w = self.writer
        reg = w.register
        self.described = reg("described", "address of the next block's description")
        self.source = reg("source", "address of the rows")
        self.out = reg("out", "address of the outputs")
        self.left = reg("left", "rows or chunks left")
        self.row = reg("row", "row or chunk in use")
        self.row_element = reg("row_element", "its element or sum")
        self.tmp = reg("tmp", "temporary")
        self.rows = w.constant("rows", places["rows"], "rows")
        self.row_elements = w.constant("row_elements", places["elements"], "an element of each row")
        self.pair = w.constant("pair", 0, "picks lower halves")
        self.one_segment = len(shape.segments) == 1
        if self.one_segment:
            self.channels = w.constant("channels", shape.channels, "elements of a row")
        else:
            self.segment = reg("segment", "segment in use")
            self.part = reg("part", "element of a segment")
            self.parts = w.constant("parts", places["parts"], "an element of each segment")
        self.count = w.constant("count", layout.rows, "rows of a block")
        self.elements = w.constant("elements", layout.rows * shape.channels, "elements of a block")
        self.numbers = [
            w.constant(f"number{n}", places["numbers"] + n * layout.number_bytes, "of each row")
            for n in range(4)
        ]
        self.sums = [
            w.constant(f"sums{n}", places["sums"] + n * layout.rows * WIDE_BYTES, "sums of a level")
            for n in range(len(self.scale.shifts))
        ]
        self.wide = reg("wide", "a constant of 32 bits")
        if shape.operation == "softmax":
            self.chunk = w.constant("chunk", places["chunk"], "a chunk")
            self.scalars = [
                w.constant(f"scalar{n}", (2 + n) * ELEMENT_BYTES, "constant") for n in range(7)
            ]
        if shape.operation != "rms":
            first = 9 if shape.operation == "softmax" else 2
            self.vector = w.constant("vector", first * ELEMENT_BYTES, "vector of the sums")

    def _begin(self) -> None:
        w = self.writer
        w.op("li", self.tmp, self.layout.constant_elements)
        w.load(self.pair, self.constants, self.tmp, note="constants")

    def _line(self) -> None:
        w = self.writer
        w.read(self.source, self.described)
        w.read(self.out, self.described)
        w.load(self.rows, self.source, self.elements, note="rows")
        if self.one_segment:
            w.op("set.vl", self.channels)
        else:
            self._set("mr", 1)
        match self.shape.operation:
            case "softmax":
                self._softmax()
            case "layer":
                self._centre()
                self._squares()
            case _:
                self._squares()
        w.note("Factors of the rows.")
        w.op("v.drain")
        self._factors()
        w.op("v.drain")
        if self.one_segment:
            w.op("set.vl", self.channels)
        fraction = self.shape.fraction
        self._set("fx", UNIT_FRACTION if fraction is None else fraction)
        self._each_row("scale", "v.s.mul", self.row_elements, ELEMENT_BYTES)
        w.op("v.drain")
        w.store(self.out, self.rows, self.elements)

    def _each_row(self, name: str, mnemonic: str, first: str, step: int) -> None:
        """Compute ``row = row operation element`` for all rows, each with its own element."""
        w = self.writer
        w.op("mov", self.row, self.rows)
        w.op("mov", self.row_element, first)
        with w.times(name, self.left, self.layout.rows):
            for segment in self._segments():
                w.vector(mnemonic, segment, segment, self.row_element)
            w.offset(self.row, self.row, self.shape.channels * ELEMENT_BYTES)
            w.op("add", self.row_element, self.row_element, step)

    def _segments(self) -> Iterator[str]:
        """Registers for the addresses of the row's segments, with their lengths set."""
        if self.one_segment:
            yield self.row
            return
        for start, length in self.shape.segments:
            self._set("vl", length)
            self.writer.offset(self.segment, self.row, start * ELEMENT_BYTES)
            yield self.segment

    def _reduced(self, result: str, operation: str, operand: str | None, last: str) -> None:
        """Reduce a row of several segments: each of them, then the results.

        Parameters:
            operand: of each segment; None: the segment itself.
            last: instruction for the results.
        """
        w = self.writer
        w.op("mov", self.part, self.parts)
        for segment in self._segments():
            w.vector(operation, self.part, segment, operand or segment)
            w.op("add", self.part, self.part, ELEMENT_BYTES)
        self._set("vl", len(self.shape.segments))
        w.vector(last, result, self.parts, self.parts)

    def _each_reduced(self, name: str, operation: str, operand: str | None, last: str) -> None:
        """Reduce all rows, each into its element."""
        w = self.writer
        w.op("mov", self.row, self.rows)
        w.op("mov", self.row_element, self.row_elements)
        with w.times(name, self.left, self.layout.rows):
            self._reduced(self.row_element, operation, operand, last)
            w.offset(self.row, self.row, self.shape.channels * ELEMENT_BYTES)
            w.op("add", self.row_element, self.row_element, ELEMENT_BYTES)
        w.op("v.drain")

    def _each_sum(self, operand: str | None) -> None:
        """Compute sums of products of all rows with a vector, or with themselves, by level."""
        w = self.writer
        if self.one_segment:
            w.op("set.vl", self.channels)
            self._set("mr", 1)
        for level, (sums, shift) in enumerate(zip(self.sums, self.scale.shifts, strict=True)):
            self._set("fx", shift)
            w.op("mov", self.row, self.rows)
            w.op("mov", self.row_element, sums)
            with w.times(f"level{level}", self.left, self.layout.rows):
                if self.one_segment:
                    w.vector("m.v.mul.add", self.row_element, self.row, operand or self.row)
                else:
                    self._reduced(self.row_element, "m.v.mul.add", operand, "m.v.nop.add")
                w.offset(self.row, self.row, self.shape.channels * ELEMENT_BYTES)
                w.op("add", self.row_element, self.row_element, WIDE_BYTES)

    def _centre(self) -> None:
        """Subtract its mean from each row."""
        w = self.writer
        w.note("Means.")
        if self.one_segment:
            w.op("set.mr", self.count)
        self._set("fx", self.shape.mean[1])
        if self.one_segment:
            w.vector("m.v.mul.add", self.row_elements, self.rows, self.vector)
            w.op("v.drain")
        else:
            self._each_reduced("mean", "m.v.mul.add", self.vector, "m.v.nop.add")
        self._each_row("centre", "v.s.sub", self.row_elements, ELEMENT_BYTES)
        w.op("v.drain")

    def _squares(self) -> None:
        self.writer.note("Sums of squares.")
        self._each_sum(None)

    def _softmax(self) -> None:
        w, layout = self.writer, self.layout
        w.note("Differences from the largest element.")
        if self.one_segment:
            w.op("set.mr", self.count)
            w.vector("m.v.nop.max", self.row_elements, self.rows, self.rows)
            w.op("v.drain")
        else:
            self._each_reduced("largest", "m.v.nop.max", None, "m.v.nop.max")
        self._each_row("below", "v.s.sub", self.row_elements, ELEMENT_BYTES)
        w.op("v.drain")
        w.note("Exponentials.")
        if self.one_segment:
            self._set("vl", layout.chunk * self.shape.channels)
        w.op("mov", self.row, self.rows)
        with w.times("exponential", self.left, layout.rows // layout.chunk):
            for chunk in self._segments():
                self._exponential(chunk)
            w.offset(self.row, self.row, layout.chunk * self.shape.channels * ELEMENT_BYTES)
        w.op("v.drain")
        w.note("Their sums.")
        self._each_sum(self.vector)

    def _exponential(self, chunk: str) -> None:
        """Compute the exponentials of a chunk, in place."""
        places: dict[str | int, str] = {"x": chunk, "result": chunk, "part": self.chunk}
        places |= dict(enumerate(self.scalars))
        for step in exponential_steps(self.shape):
            self._step(step, places)

    def _factors(self) -> None:
        """Compute each row's factor from its sums, as an element."""
        w, names = self.writer, ("total", "scale", "full", "value")
        places: dict[str | int, str] = dict(zip(names, self.numbers, strict=True))
        places |= {f"sums{level}": sums for level, sums in enumerate(self.sums)}
        value = places["result"] = places["value"]
        w.op("set.vl", self.count)
        for step in factor_steps(self.scale):
            if step.shift is not None:
                self._set("fx", step.shift)
            if isinstance(step.second, int):
                w.op("li", self.wide, self.layout.places["wide"] + step.second * WIDE_BYTES)
                places[step.second] = self.wide
            w.op(f"{step.mnemonic} [32-bit]", *(places[one] for one in step.places))
        w.note("Factors become elements.")
        self._set("fx", 0)
        self._set("vl", 2)
        w.op("set.mr", self.count)
        w.vector("m.v.mul.add", self.row_elements, value, self.pair)
