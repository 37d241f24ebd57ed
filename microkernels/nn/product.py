"""Products of two maps, group by group: sizes, golden model, layout and kernel.

A column of pixels of a map is a *group*: a matrix whose rows are the pixels. The product of a group
of the first map and the transposed one of the second has an element for each two rows. So the
scores of attention are the product of queries and keys, whose heads are groups.

Both maps and the output have one slice, so that the rows of a group follow each other in memory.
The work is cut into *lines*: some rows of a group of the first map, with all rows of the second
one. A line is cut into *blocks*: some rows of the second map. Where lines or blocks do not divide
the rows, the last one overlaps the one before, and the same elements are computed twice.

The scratchpad holds the rows of the line, a ring of two blocks, and the results of a block. All
begin at multiples of :data:`isa.timing.RANGE_BYTES`. The engines take the lines in turns. An
engine's part of the parameter block::

    0  lines; 0: nothing to do
    1  for each line: addresses of its rows, of the group's rows in the second map, and of its first
       output; a line more

While the rows of a line meet a
block of the second map, the next block is loaded. A row and a block are one ``m.v.mul.add``.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from isa.program import Program
from isa.table import MAX_MR, MAX_VL
from isa.timing import RANGE_BYTES, WORD_BYTES
from microkernels.common.block_layout import BlockLayout
from microkernels.common.builder import DEFAULT_SCRATCHPAD, KernelBuilder, launch_registers
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import FeatureMap, StripMap, round_up
from microkernels.common.fixed_point import (
    ELEMENT_BYTES,
    Elements,
    check_elements,
    check_fraction,
    dot,
)
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import block_bytes, part_sizes

__all__ = [
    "MOST_INNER",
    "Blocks",
    "ProductLayout",
    "ProductShape",
    "plan_product",
    "product",
    "product_program",
]

#: Elements of a row at most: its products are one exact sum.
MOST_INNER = MAX_VL


@dataclass(frozen=True, kw_only=True)
class ProductShape:
    """Sizes of a product of two maps.

    Attributes:
        groups: columns of pixels of the output, at least 1.
        rows, columns: pixels of a group of the first and of the second map, at least 1 each. The
            output has ``rows`` pixels in a group, of ``columns`` channels.
        inner: channels of both maps, 1..:data:`MOST_INNER`.
        fraction: bits by which sums of products are shifted right, 0..15.
        shared: the first and the second map have one group, which serves all groups of the output.

    Raises:
        KernelError: a value outside its range.
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

    @property
    def widths(self) -> tuple[int, int]:
        """Groups of both maps."""
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
    found: Elements = dot(first.transpose(1, 0, 2), second.transpose(1, 2, 0), shape.fraction)
    return np.ascontiguousarray(found.transpose(1, 0, 2))


_HEADER_WORDS = 1
_LINE_WORDS = 3
_SLOTS = 2
_LANES = WORD_BYTES // ELEMENT_BYTES
#: For estimates: cycles of a vector instruction at least, of a row's store, of a block, of a line.
_INSTRUCTION = 9
_STORE = 8
_BLOCK = 60
_LINE = 120


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """How a product is cut.

    Attributes:
        rows: of a line. columns: rows of the second map in a block.
        cycles: predicted.
    """

    rows: int
    columns: int
    cycles: float


def _scratchpad(shape: ProductShape, rows: int, columns: int) -> tuple[int, int, int, int]:
    """Addresses of the ring and of the results, bytes of a block, and end of the scratchpad."""
    row = shape.inner * ELEMENT_BYTES
    ring = round_up(rows * row, RANGE_BYTES)
    block = round_up(columns * row, RANGE_BYTES)
    results = ring + _SLOTS * block
    return ring, results, block, results + round_up(rows * columns * ELEMENT_BYTES, RANGE_BYTES)


@lru_cache(maxsize=256)
def plan_product(
    shape: ProductShape, *, sharers: int, scratchpad_bytes: int = DEFAULT_SCRATCHPAD
) -> Blocks:
    """The fastest cut by predicted cycles.

    Parameters:
        sharers: engines, at least 1.

    Raises:
        KernelError: the scratchpad is too small for any.
    """
    found: Blocks | None = None
    beats = -(-shape.inner // _LANES)
    for columns in range(1, min(shape.columns, MAX_MR) + 1):
        blocks = -(-shape.columns // columns)
        if -(-shape.columns // blocks) != columns:
            continue
        for rows in range(1, shape.rows + 1):
            count = -(-shape.rows // rows)
            if -(-shape.rows // count) != rows:
                continue
            if _scratchpad(shape, rows, columns)[3] > scratchpad_bytes:
                break
            lines = -(-shape.groups * count // sharers)
            load = sharers * columns * beats
            work = rows * max(columns * beats, _INSTRUCTION)
            stores = _STORE * (rows if blocks > 1 else 1)
            line = _LINE + sharers * rows * beats + blocks * (max(load, work) + stores + _BLOCK)
            if found is None or lines * line < found.cycles:
                found = Blocks(rows=rows, columns=columns, cycles=float(lines * line))
    if found is None:
        raise KernelError(
            f"rows of {shape.inner} elements need a scratchpad of "
            f"{_scratchpad(shape, 1, 1)[3]} bytes, not {scratchpad_bytes}"
        )
    return found


@dataclass(frozen=True, kw_only=True)
class ProductLayout(BlockLayout):
    """Addresses of a product; see the module's text.

    Attributes:
        shape: of the layer.
        source, other: the maps that are read.
        target: the output; it shares no memory with the maps that are read.
        base: first address of all other data; a multiple of 32.
        sharers: engines that share the layer, at least 1.
        scratchpad_bytes: size of the scratchpad.

    Raises:
        KernelError: maps that do not fit the layer or have several slices, a scratchpad that is too
            small, or a value outside its range.
    """

    shape: ProductShape
    source: FeatureMap
    other: FeatureMap
    target: FeatureMap
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = self.shape
        first, second = shape.widths
        self.source.check_size("source", first, shape.rows, shape.inner)
        self.other.check_size("other", second, shape.columns, shape.inner)
        self.target.check_size("target", shape.groups, shape.rows, shape.columns)
        maps = {"source": self.source, "other": self.other, "target": self.target}
        for name, held in maps.items():
            if isinstance(held, StripMap):
                raise KernelError("products need maps without strips")
            if held.depth != held.channels:
                raise KernelError(
                    f"{name} must have one slice of {held.channels} channels, not slices of "
                    f"{held.depth}"
                )
        _ = self.blocks

    @property
    def blocks(self) -> Blocks:
        """How the product is cut."""
        return plan_product(
            self.shape, sharers=self.sharers, scratchpad_bytes=self.scratchpad_bytes
        )

    # Scratchpad.

    @property
    def ring(self) -> int:
        """Scratchpad address of the blocks, after the rows of the line."""
        return _scratchpad(self.shape, self.blocks.rows, self.blocks.columns)[0]

    @property
    def block_bytes(self) -> int:
        """Bytes of a block in the scratchpad."""
        return _scratchpad(self.shape, self.blocks.rows, self.blocks.columns)[2]

    @property
    def results(self) -> int:
        """Scratchpad address of the results of a block, row after row."""
        return _scratchpad(self.shape, self.blocks.rows, self.blocks.columns)[1]

    @property
    def scratchpad_end(self) -> int:
        """First byte of the scratchpad that is not used."""
        return _scratchpad(self.shape, self.blocks.rows, self.blocks.columns)[3]

    @property
    def line_blocks(self) -> int:
        """Blocks of a line."""
        return -(-self.shape.columns // self.blocks.columns)

    @property
    def overlap(self) -> int:
        """Rows of the second map that the last two blocks both have."""
        return self.line_blocks * self.blocks.columns - self.shape.columns

    # Memory.

    @property
    def _lines(self) -> list[tuple[int, int]]:
        """Group and first row of each line."""
        rows, last = self.blocks.rows, self.shape.rows - self.blocks.rows
        starts = [min(row, last) for row in range(0, self.shape.rows, rows)]
        return [(group, row) for group in range(self.shape.groups) for row in starts]

    @property
    def _parts(self) -> list[int]:
        return part_sizes(len(self._lines), self.sharers, fixed=_HEADER_WORDS, each=_LINE_WORDS)

    @property
    def end(self) -> int:
        """First byte after all data that this layout adds to the maps."""
        return self._block_end

    def store(self, memory: Writable) -> None:
        """Put all but the maps into ``memory``.

        Raises:
            isa.image.ImageError: the layout lies outside the memory.
        """
        memory.write(self.parameters, self.block(self.parameters))

    def block(self, address: int) -> bytes:
        """The parameter block, for ``address``; see
        :meth:`microkernels.nn.conv_layout.ConvLayout.block`."""
        one, other = self.shape.shared
        words = []
        for member, size in enumerate(self._parts):
            lines = self._lines[member :: self.sharers]
            part = [len(lines)]
            for group, row in lines:
                part += [
                    self.source.address(0 if one else group, row),
                    self.other.address(0 if other else group, 0),
                    self.target.address(group, row),
                ]
            words.append(part + [0] * (size - len(part)))
        return block_bytes(address, words)


@CHECK.arguments
@lru_cache(maxsize=64)
def product_program(layout: ProductLayout, *, vault_bits: int | None = None) -> Program:
    """The program of a product with these sizes and addresses.

    Parameters:
        vault_bits: address bits of a vault, where the start register ``parameters`` is an address
            within it (:meth:`microkernels.common.builder.KernelBuilder.start`).
    """
    shape = layout.shape
    name = f"product_{shape.groups}x{shape.rows}x{shape.columns}x{shape.inner}.s"
    return _ProductKernel(layout, vault_bits).build().program(name)


class _ProductKernel:
    """Registers and code of the kernel."""

    def __init__(self, layout: ProductLayout, vault_bits: int | None) -> None:
        self.layout = layout
        self.vault_bits = vault_bits
        shape, blocks = layout.shape, layout.blocks
        self.writer = w = KernelBuilder(
            f"Products of {shape.groups} group(s) of {shape.rows} and {shape.columns} rows of "
            f"{shape.inner} elements.",
            "Generated by microkernels.nn.product, which explains it.",
            "",
            f"Scratchpad ({layout.scratchpad_end} bytes)",
            f"  {0:>4} {blocks.rows} row(s) of the first map",
            f"  {layout.ring:>4} two blocks of {blocks.columns} row(s) of the second map",
            f"  {layout.results:>4} results",
            launch=launch_registers(vault_bits),
            scratchpad_bytes=layout.scratchpad_bytes,
            place_drains=True,
        )
        reg = w.register
        self.lines = reg("lines", "lines left")
        self.described = reg("described", "address of the next line's description")
        self.source = reg("source", "address of the rows")
        self.other = reg("other", "address of the next block to load")
        self.out = reg("out", "address of the block's first output")
        self.left = reg("left", "blocks left in the line")
        self.slot = reg("use", "block in use")
        self.fill = reg("fill", "block to load")
        self.count = reg("count", "rows left")
        self.row = reg("row", "row in use")
        self.made = reg("made", "result")
        self.to = reg("to", "address of a row's outputs")
        self.a = reg("a", "for the moment")
        self.rows = w.constant("rows", 0, "rows of the line")
        self.results = w.constant("results", layout.results, "results")
        self.all_rows = w.constant("all_rows", blocks.rows * shape.inner, "elements of the rows")
        self.block = w.constant("block", blocks.columns * shape.inner, "elements of a block")
        whole = layout.line_blocks == 1
        outputs = blocks.columns * (blocks.rows if whole else 1)
        self.outputs = w.constant("outputs", outputs, "outputs of a store")
        if layout.overlap:
            self.one = w.constant("one", 1, "blocks left at the last one")

    def build(self) -> KernelBuilder:
        """The whole program."""
        w, shape, blocks = self.writer, self.layout.shape, self.layout.blocks
        w.start((self.lines,), self.described, vault_bits=self.vault_bits)
        with w.unless("beq", self.lines, w.zero):
            for setting, value in (
                ("set.fx", shape.fraction),
                ("set.vl", shape.inner),
                ("set.mr", blocks.columns),
            ):
                w.op("li", self.a, value)
                w.op(setting, self.a)
            with w.loop("line", self.lines):
                self._line()
        w.op("halt")
        return w

    def _line(self) -> None:
        w, layout = self.writer, self.layout
        for word in (self.source, self.other, self.out):
            w.read(word, self.described)
        w.load(self.rows, self.source, self.all_rows, note="rows of the first map")
        w.op("li", self.slot, layout.ring)
        w.op("li", self.fill, layout.ring + layout.block_bytes)
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
            w.swap(self.slot, self.fill, self.a)
            w.op("bne", self.left, w.zero, "block_turn")

    def _advance(self, address: str, elements: int) -> None:
        """Go on by a block of so many elements a row of the second map."""
        w, layout = self.writer, self.layout
        w.offset(address, address, layout.blocks.columns * elements * ELEMENT_BYTES)
        if layout.overlap:
            with w.unless("bne", self.left, self.one):
                w.offset(address, address, -layout.overlap * elements * ELEMENT_BYTES)

    def _rows(self) -> None:
        """All rows of the line with the block."""
        w, layout = self.writer, self.layout
        w.op("mov", self.row, self.rows)
        w.op("mov", self.made, self.results)
        w.op("li", self.count, layout.blocks.rows)
        with w.loop("row_turn", self.count):
            w.vector("m.v.mul.add", self.made, self.slot, self.row)
            w.offset(self.row, self.row, layout.shape.inner * ELEMENT_BYTES)
            w.offset(self.made, self.made, layout.blocks.columns * ELEMENT_BYTES)

    def _stores(self) -> None:
        """Store the results of the block."""
        w, layout = self.writer, self.layout
        if layout.line_blocks == 1:
            w.store(self.out, self.results, self.outputs)
            return
        w.op("mov", self.to, self.out)
        w.op("mov", self.made, self.results)
        w.op("li", self.count, layout.blocks.rows)
        with w.loop("store_turn", self.count):
            w.store(self.to, self.made, self.outputs)
            w.offset(self.to, self.to, layout.target.y_step)
            w.offset(self.made, self.made, layout.blocks.columns * ELEMENT_BYTES)
