"""Layout of a layer that normalises rows in the scratchpad and in DRAM, and its parameter block.

Both maps have one slice, so that the rows of a column of pixels follow each other in memory. The
work is cut into *blocks* of rows; where they do not divide a column, the last block overlaps the
one before. The engines take the blocks in turns.

The scratchpad holds the constants, the block, for softmax a place for a *chunk* of the block, which
is the longest vector of whole rows that divides it, and what belongs to each row: an element, sums
by level and four numbers of 32 bits, of which sums have zeros in their upper halves. Where a row is
several segments, a chunk is one of them, and there is a place for an element of each.

An engine's part of the parameter block::

    0  blocks; 0: nothing to do
    1  address of the constants
    2  for each block: addresses of its rows and of its outputs; a block more
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from isa.table import MAX_MR, MAX_VL
from isa.timing import RANGE_BYTES
from microkernels.common.block_layout import BlockLayout
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES, FeatureMap, StripMap, round_up
from microkernels.common.fixed_point import ELEMENT, ELEMENT_BYTES
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import block_bytes, part_sizes

from .shape import EXPONENTIAL, UNIT_FRACTION, NormalizeShape

__all__ = ["WIDE_BYTES", "RowsLayout", "predict_rows"]

_HEADER_WORDS = 2
_BLOCK_WORDS = 2
#: Bytes of a number of 32 bits.
WIDE_BYTES = 4
#: Numbers of 32 bits of a row beside its sums.
_NUMBERS = 4
_LANES = 4
#: For estimates: cycles of a step on what belongs to rows at least, and of a block's transfers.
_STEP = 24
_BLOCK = 300


def _rounded(size: int) -> int:
    return round_up(size, RANGE_BYTES)


@dataclass(frozen=True, kw_only=True)
class _Cut:
    """Rows of a block and of a chunk, and predicted cycles."""

    rows: int
    chunk: int
    cycles: float


def _places(shape: NormalizeShape, rows: int, chunk: int) -> tuple[dict[str, int], int]:
    """Scratchpad address of each place, and the end."""
    levels = len(shape.scale.shifts)
    count, segment = len(shape.segments), shape.segments[0][1]
    sizes = {
        "narrow": len(_narrow(shape)) * ELEMENT_BYTES,
        "wide": len(_wide(shape)) * WIDE_BYTES,
        "sums": levels * rows * WIDE_BYTES,
        "rows": rows * shape.channels * ELEMENT_BYTES,
        "chunk": chunk * segment * ELEMENT_BYTES if shape.operation == "softmax" else 0,
        "parts": count * ELEMENT_BYTES if count > 1 else 0,
        "own": rows * ELEMENT_BYTES,
        "numbers": _NUMBERS * _rounded(rows * WIDE_BYTES),
    }
    found, at = {}, 0
    for name, size in sizes.items():
        found[name] = at
        at += _rounded(size)
    return found, at


def _narrow(shape: NormalizeShape) -> list[int]:
    """Constants of 16 bits: the pair that picks lower halves, scalars, and the vector of sums."""
    segment = shape.segments[0][1]
    if shape.operation == "softmax":
        wide = shape.widened
        scalars = [*EXPONENTIAL, (1 << UNIT_FRACTION) - 1]
        scalars += [1 << max(wide, 0), -(1 << (UNIT_FRACTION - max(wide, 0)))]
        return [1, 0, *scalars, *[1] * segment]
    if shape.operation == "layer":
        return [1, 0, *[shape.mean[0]] * segment]
    return [1, 0]


def _wide(shape: NormalizeShape) -> list[int]:
    """Constants of 32 bits."""
    how = shape.scale
    value = 3 << 24 if how.root else 2 << 29
    return [
        (1 << UNIT_FRACTION) - 2,
        0,
        -(1 << how.mantissa),
        *how.start,
        value,
        (1 << UNIT_FRACTION) - 1,
        *how.scales,
        *how.added,
    ]


@lru_cache(maxsize=256)
def _plan(shape: NormalizeShape, *, sharers: int, scratchpad_bytes: int) -> _Cut:
    found: _Cut | None = None
    soft = shape.operation == "softmax"
    levels = len(shape.scale.shifts)
    beats = -(-shape.channels // _LANES)
    steps = 8 * levels + (4 if shape.scale.root else 3) * shape.scale.rounds + 8
    for rows in range(1, min(shape.height, MAX_MR) + 1):
        count = -(-shape.height // rows)
        if -(-shape.height // count) != rows:
            continue
        most = max(MAX_VL // shape.channels, 1)
        chunk = max(each for each in range(1, min(most, rows) + 1) if rows % each == 0)
        if _places(shape, rows, chunk)[1] > scratchpad_bytes:
            break
        blocks = -(-shape.width * count // sharers)
        each = (levels + 3) * rows * max(beats, 10)
        if soft:
            chunks = rows // chunk
            vector = max(-(-chunk * shape.channels // _LANES), 14)
            each += (10 + 3 * shape.squarings) * chunks * vector
        each += steps * max(rows, _STEP) + _BLOCK + rows * beats * 2 * sharers
        if found is None or blocks * each < found.cycles:
            found = _Cut(rows=rows, chunk=chunk, cycles=float(blocks * each))
    if found is None:
        raise KernelError(
            f"{shape.operation} of rows of {shape.channels} elements needs a scratchpad of "
            f"{_places(shape, 1, 1)[1]} bytes, not {scratchpad_bytes}"
        )
    return found


def predict_rows(
    shape: NormalizeShape, *, sharers: int, scratchpad_bytes: int = DEFAULT_SCRATCHPAD
) -> float:
    """Predicted cycles of a layer on ``sharers`` engines.

    Raises:
        KernelError: the scratchpad is too small for a row.
    """
    return _plan(shape, sharers=sharers, scratchpad_bytes=scratchpad_bytes).cycles


@dataclass(frozen=True, kw_only=True)
class RowsLayout(BlockLayout):
    """Addresses of a layer that normalises rows; see the module's text.

    Attributes:
        shape: of the layer.
        source: the map that is read.
        target: the output; it shares no memory with the source.
        base: first address of all other data; a multiple of 32.
        sharers: engines that share the layer, at least 1.
        scratchpad_bytes: size of the scratchpad.

    Raises:
        KernelError: maps that do not fit the layer or have several slices, a scratchpad that is too
            small, or a value outside its range.
    """

    shape: NormalizeShape
    source: FeatureMap
    target: FeatureMap
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = self.shape
        for name, held in (("source", self.source), ("target", self.target)):
            held.check_size(name, shape.width, shape.height, shape.channels)
            if isinstance(held, StripMap):
                raise KernelError(f"{shape.operation} needs maps without strips")
            if held.depth != shape.channels:
                raise KernelError(
                    f"{name} must have one slice of {shape.channels} channels, not slices of "
                    f"{held.depth}"
                )
        _ = self._cut

    @property
    def _cut(self) -> _Cut:
        return _plan(self.shape, sharers=self.sharers, scratchpad_bytes=self.scratchpad_bytes)

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return self._cut.rows

    @property
    def chunk(self) -> int:
        """Rows of a chunk."""
        return self._cut.chunk

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Scratchpad address of each place, by name."""
        return _places(self.shape, self.rows, self.chunk)[0]

    @property
    def scratchpad_end(self) -> int:
        """First byte of the scratchpad that is not used."""
        return _places(self.shape, self.rows, self.chunk)[1]

    @property
    def number_bytes(self) -> int:
        """Bytes from a number of 32 bits of all rows to the next one."""
        return _rounded(self.rows * WIDE_BYTES)

    @property
    def constant_elements(self) -> int:
        """Elements of all constants in memory, with the zeros above the sums."""
        return self.places["rows"] // ELEMENT_BYTES

    # Memory.

    @property
    def _blocks(self) -> list[tuple[int, int]]:
        """Column and first row of each block."""
        last = self.shape.height - self.rows
        starts = [min(row, last) for row in range(0, self.shape.height, self.rows)]
        return [(x, row) for x in range(self.shape.width) for row in starts]

    @property
    def _parts(self) -> list[int]:
        return part_sizes(len(self._blocks), self.sharers, fixed=_HEADER_WORDS, each=_BLOCK_WORDS)

    @property
    def constants(self) -> int:
        """Address of the constants, which lie as in the scratchpad."""
        return self._block_end

    @property
    def end(self) -> int:
        """First byte after all data that this layout adds to the maps."""
        return round_up(self.constants + self.places["rows"], COLUMN_BYTES)

    def store(self, memory: Writable) -> None:
        """Put all but the maps into ``memory``.

        Raises:
            isa.image.ImageError: the layout lies outside the memory.
        """
        held = bytearray(self.places["rows"])
        narrow = np.array(_narrow(self.shape), ELEMENT).tobytes()
        wide = np.array(_wide(self.shape), "<i4").tobytes()
        held[: len(narrow)] = narrow
        held[self.places["wide"] : self.places["wide"] + len(wide)] = wide
        memory.write(self.constants, bytes(held))
        memory.write(self.parameters, self.block(self.parameters))

    def block(self, address: int) -> bytes:
        """The parameter block, for ``address``; see
        :meth:`microkernels.nn.conv_layout.ConvLayout.block`."""
        words = []
        for member, size in enumerate(self._parts):
            blocks = self._blocks[member :: self.sharers]
            part = [len(blocks), self.constants]
            for x, row in blocks:
                part += [self.source.address(x, row), self.target.address(x, row)]
            words.append(part + [0] * (size - len(part)))
        return block_bytes(address, words)
