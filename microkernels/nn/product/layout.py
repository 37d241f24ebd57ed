"""Layout of a product's data in the scratchpad and in DRAM, and its parameter block.

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
"""

from dataclasses import dataclass
from functools import lru_cache

from isa.table import MAX_MR
from isa.timing import RANGE_BYTES, WORD_BYTES
from microkernels.common.block_layout import BlockLayout
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import FeatureMap, StripMap, round_up
from microkernels.common.fixed_point import ELEMENT_BYTES
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import block_bytes, part_sizes

from .shape import ProductShape

__all__ = ["Blocks", "ProductLayout", "plan_product"]

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
