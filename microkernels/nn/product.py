"""Products of two maps, group by group: sizes, golden model, layout and kernel.

A column of pixels of a map is a *group*: a matrix whose rows are the pixels. The product of a group
of the first map and the transposed group of the second has one element for every two rows. The
scores of attention, for example, are the product of queries and keys, whose heads are groups.

Both maps and the output have one slice, so the rows of a group are consecutive in memory. The work
is divided into *lines*: some rows of a group of the first map, with all rows of the second. A line
is divided into *blocks*: some rows of the second map. If lines or blocks do not divide the rows
evenly, the last one overlaps the previous one, and the same elements are computed twice.

The scratchpad contains the line's rows, a ring of two blocks, and the results of a block. A line's
words are the addresses of its rows, of the group's rows in the second map, and of its first output.
While the line's rows are multiplied by one block of the second map, the next block is loaded. A row
and a block are one ``m.v.mul.add``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from isa.limits import RANGE_BYTES
from isa.program import Program
from isa.table import MAX_MR, MAX_VL
from isa.timing import WORD_BYTES
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import FeatureMap, even_parts, part_starts, round_up
from microkernels.common.fixed_point import (
    ELEMENT_BYTES,
    Elements,
    check_elements,
    check_fraction,
    dot,
)
from microkernels.common.memory import Writable
from microkernels.common.scratchpad_plan import ScratchpadPlan
from support.errors import counted

from .line import LineKernel, LineLayout

#: Maximum elements per row: its products are one exact sum.
MOST_INNER = MAX_VL


@dataclass(frozen=True, kw_only=True)
class ProductShape:
    """Sizes of a product of two maps.

    Attributes:
        groups: columns of pixels of the output, at least 1.
        rows, columns: pixels per group of the first and of the second map, at least 1 each. The
            output has ``rows`` pixels per group, of ``columns`` channels.
        inner: channels of both maps, 1..:data:`MOST_INNER`.
        fraction: bits by which sums of products are shifted right, 0..15.
        shared: the first and the second map have one group, which is used for all groups of the
            output.

    Raises:
        KernelError: a value out of range.
    """

    groups: int
    rows: int
    columns: int
    inner: int
    fraction: int
    shared: tuple[bool, bool] = (False, False)

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("groups", "rows", "columns"):
            CHECK.at_least(name, getattr(self, name), 1)
        CHECK.within("inner", self.inner, 1, MOST_INNER)
        check_fraction(self.fraction)
        CHECK.kind("shared", self.shared, tuple)
        CHECK.within("numbers of shared", len(self.shared), 2, 2)
        for one in self.shared:
            CHECK.kind("shared", one, bool)

    @property
    def widths(self) -> tuple[int, int]:
        """Numbers of groups of both maps."""
        first, second = self.shared
        return (1 if first else self.groups, 1 if second else self.groups)

    @property
    def operations(self) -> int:
        """Additions and multiplications."""
        return 2 * self.groups * self.rows * self.columns * self.inner


def product(shape: ProductShape, first: Elements, second: Elements) -> Elements:
    """Golden model of the kernel, bit-exact.

    Parameters:
        first: rows x groups (or 1) x inner elements.
        second: columns x groups (or 1) x inner elements.

    Returns:
        rows x groups x columns elements.

    Raises:
        KernelError: an array of another shape, or values beyond 16 bits.
    """
    one, other = shape.widths
    first = check_elements("first", first, (shape.rows, one, shape.inner))
    second = check_elements("second", second, (shape.columns, other, shape.inner))
    products: Elements = dot(first.transpose(1, 0, 2), second.transpose(1, 2, 0), shape.fraction)
    return np.ascontiguousarray(products.transpose(1, 0, 2))


_SLOTS = 2
_LANES = WORD_BYTES // ELEMENT_BYTES
#: For estimates: minimum cycles of a vector instruction, of a row's store, of a block, of a line.
_INSTRUCTION = 9
_STORE = 8
_BLOCK = 60
_LINE = 120


def _block_bytes(shape: ProductShape, columns: int) -> int:
    return round_up(columns * shape.inner * ELEMENT_BYTES, RANGE_BYTES)


def _scratchpad(shape: ProductShape, rows: int, columns: int) -> ScratchpadPlan:
    return ScratchpadPlan(
        {
            "rows": rows * shape.inner * ELEMENT_BYTES,
            "blocks": _SLOTS * _block_bytes(shape, columns),
            "results": rows * columns * ELEMENT_BYTES,
        }
    )


@lru_cache(maxsize=256)
def plan_product(
    shape: ProductShape, *, sharers: int, scratchpad_bytes: int = DEFAULT_SCRATCHPAD
) -> tuple[float, int, int]:
    """The division with the fewest predicted cycles: these, rows per line, and rows of the second
    map in a block.

    Parameters:
        sharers: number of engines, at least 1.

    Raises:
        KernelError: the scratchpad is too small for any division.
    """
    cuts = _cuts(shape, sharers, scratchpad_bytes)
    fastest = min(cuts, key=lambda cut: cut[0], default=None)
    if fastest is None:
        raise KernelError(
            f"rows of {shape.inner} elements need a scratchpad of "
            f"{_scratchpad(shape, 1, 1).used} bytes, not {scratchpad_bytes}"
        )
    return fastest


def _cuts(
    shape: ProductShape, sharers: int, scratchpad_bytes: int
) -> Iterator[tuple[float, int, int]]:
    """The divisions that fit, as for :func:`plan_product`."""
    beats = -(-shape.inner // _LANES)
    for columns in even_parts(shape.columns, MAX_MR):
        blocks = -(-shape.columns // columns)
        for rows in even_parts(shape.rows, shape.rows):
            count = -(-shape.rows // rows)
            if _scratchpad(shape, rows, columns).used > scratchpad_bytes:
                break
            lines = -(-shape.groups * count // sharers)
            load = sharers * columns * beats
            work = rows * max(columns * beats, _INSTRUCTION)
            stores = _STORE * (rows if blocks > 1 else 1)
            line = _LINE + sharers * rows * beats + blocks * (max(load, work) + stores + _BLOCK)
            yield float(lines * line), rows, columns


@dataclass(frozen=True, kw_only=True)
class ProductLayout(LineLayout):
    """Addresses of a product; see the module's text.

    Attributes:
        shape: of the layer.
        other: the second input map.

    Raises:
        KernelError: maps that do not fit the layer or have several slices, a scratchpad that is too
            small, or a value out of range.
    """

    has_constants = False

    shape: ProductShape
    other: FeatureMap

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = self.shape
        first, second = shape.widths
        self._check_maps(
            "products need",
            (first, shape.rows, shape.inner),
            (second, shape.columns, shape.inner),
            (shape.groups, shape.rows, shape.columns),
            one_slice=True,
        )
        _ = self._cut

    @property
    def maps(self) -> Mapping[str, FeatureMap]:
        return {"source": self.source, "other": self.other, "target": self.target}

    @property
    def _cut(self) -> tuple[float, int, int]:
        return plan_product(
            self.shape, sharers=self.sharers, scratchpad_bytes=self.scratchpad_bytes
        )

    @property
    def rows(self) -> int:
        """Rows per line."""
        return self._cut[1]

    @property
    def columns(self) -> int:
        """Rows of the second map in a block."""
        return self._cut[2]

    @property
    def scratchpad(self) -> ScratchpadPlan:
        """The line's rows, the ring of blocks, and the results of a block, row by row."""
        return _scratchpad(self.shape, self.rows, self.columns)

    @property
    def block_bytes(self) -> int:
        """Bytes of a block in the scratchpad."""
        return _block_bytes(self.shape, self.columns)

    @property
    def line_blocks(self) -> int:
        """Blocks per line."""
        return -(-self.shape.columns // self.columns)

    @property
    def overlap(self) -> int:
        """Rows of the second map shared by the last two blocks."""
        return self.line_blocks * self.columns - self.shape.columns

    # Memory.

    @property
    def _lines(self) -> list[tuple[int, int]]:
        """Each line's group and first row."""
        starts = part_starts(self.shape.rows, self.rows)
        return [(group, row) for group in range(self.shape.groups) for row in starts]

    def _words(self, line: tuple[int, int]) -> list[int]:
        group, row = line
        one, other = self.shape.shared
        return [
            self.source.address(0 if one else group, row),
            self.other.address(0 if other else group, 0),
            self.target.address(group, row),
        ]

    @property
    def end(self) -> int:
        return self._block_end

    def store(self, memory: Writable) -> None:
        """Write everything except the maps to ``memory``.

        Raises:
            isa.image.ImageError: the layout is outside the memory.
        """
        self._store_fixed(memory)

    def generate(self, vault_bits: int | None) -> Program:
        shape = self.shape
        name = f"product_{shape.groups}x{shape.rows}x{shape.columns}x{shape.inner}.s"
        return _ProductKernel(self, vault_bits).build().program(name)


class _ProductKernel(LineKernel[ProductLayout]):
    def __init__(self, layout: ProductLayout, vault_bits: int | None) -> None:
        shape, scratchpad = layout.shape, layout.scratchpad
        super().__init__(
            layout,
            vault_bits,
            f"Products of {counted(shape.groups, 'group')} of {shape.rows} and {shape.columns} "
            f"rows of {shape.inner} elements, {layout.rows} by {layout.columns} at a time.",
            scratchpad,
        )
        w = self.writer
        reg = w.register
        self.described = reg("described", "address of the next line's description")
        self.source = reg("source", "address of the rows")
        self.other = reg("other", "address of the next block to load")
        self.out = reg("out", "address of the block's first output")
        self.left = reg("left", "blocks left in the line")
        self.slot = reg("use", "block in use")
        self.fill = reg("fill", "block to load")
        self.count = reg("count", "rows left")
        self.row = reg("row", "row in use")
        self.result = reg("result", "place of a row's results")
        self.to = reg("to", "address of a row's outputs")
        self.tmp = reg("tmp", "temporary")
        self.rows = w.constant("rows", scratchpad["rows"], "rows of the line")
        self.results = w.constant("results", scratchpad["results"], "results")
        self.all_rows = w.constant("all_rows", layout.rows * shape.inner, "elements of the rows")
        self.block = w.constant("block", layout.columns * shape.inner, "elements of a block")
        outputs = layout.columns * (layout.rows if layout.line_blocks == 1 else 1)
        self.outputs = w.constant("outputs", outputs, "outputs of a store")
        if layout.overlap:
            self.one = w.constant("one", 1, "blocks left at the last one")

    def _begin(self) -> None:
        shape = self.layout.shape
        self._set("fx", shape.fraction)
        self._set("vl", shape.inner)
        self._set("mr", self.layout.columns)

    def _line(self) -> None:
        w, layout = self.writer, self.layout
        for word in (self.source, self.other, self.out):
            w.read(word, self.described)
        w.load(self.rows, self.source, self.all_rows, note="rows of the first map")
        ring = layout.scratchpad["blocks"]
        w.op("li", self.slot, ring)
        w.op("li", self.fill, ring + layout.block_bytes)
        w.load(self.slot, self.other, self.block, note="block of the second map")
        w.op("li", self.left, layout.line_blocks)
        w.note("A block.")
        w.label("block_turn")
        w.op("sub", self.left, self.left, 1)
        if layout.line_blocks > 1:
            with w.unless("beq", self.left, w.zero):
                self._advance(self.other, layout.shape.inner)
                w.load(self.fill, self.other, self.block, note="the next one")
        self._rows()
        w.op("v.drain")
        self._stores()
        if layout.line_blocks > 1:
            self._advance(self.out, 1)
            w.swap(self.slot, self.fill, self.tmp)
            w.op("bne", self.left, w.zero, "block_turn")

    def _advance(self, address: str, elements: int) -> None:
        """Advance by a block with this many elements per row of the second map."""
        w, layout = self.writer, self.layout
        w.offset(address, address, layout.columns * elements * ELEMENT_BYTES)
        if layout.overlap:
            with w.unless("bne", self.left, self.one):
                w.offset(address, address, -layout.overlap * elements * ELEMENT_BYTES)

    def _rows(self) -> None:
        """Multiply all rows of the line by the block."""
        w, layout = self.writer, self.layout
        w.op("mov", self.row, self.rows)
        w.op("mov", self.result, self.results)
        w.op("li", self.count, layout.rows)
        with w.loop("row_turn", self.count):
            w.vector("m.v.mul.add", self.result, self.slot, self.row)
            w.offset(self.row, self.row, layout.shape.inner * ELEMENT_BYTES)
            w.offset(self.result, self.result, layout.columns * ELEMENT_BYTES)

    def _stores(self) -> None:
        w, layout = self.writer, self.layout
        if layout.line_blocks == 1:
            w.store(self.out, self.results, self.outputs)
            return
        w.op("mov", self.to, self.out)
        w.op("mov", self.result, self.results)
        w.op("li", self.count, layout.rows)
        with w.loop("store_turn", self.count):
            w.store(self.to, self.result, self.outputs)
            w.offset(self.to, self.to, layout.target.y_step)
            w.offset(self.result, self.result, layout.columns * ELEMENT_BYTES)
