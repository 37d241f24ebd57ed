"""Layout of an element-wise layer's data in the scratchpad and in DRAM, and its parameter block.

The work is cut into *lines*: a column of pixels of one slice of the channels, which is one
contiguous piece of memory in each map. The engines take the lines in turns. A line is cut into
*pieces* of equal length; where they do not divide it, the last one overlaps the one before, and the
same elements are computed twice.

The scratchpad holds the constants, two pieces of results, of a polynomial a piece of its argument,
of a curve also one of a part of it, and a ring of *slots*: a piece of each map that is read. All
begin at multiples of :data:`isa.timing.RANGE_BYTES`.

An engine's part of the parameter block::

    0  lines; 0: nothing to do
    1  address of the constants
    2  for each line: its address in each map that is read, and in the target; a description more
"""

from dataclasses import dataclass

import numpy as np

from isa.table import MAX_VL
from isa.timing import RANGE_BYTES
from microkernels.common.block_layout import BlockLayout
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES, FeatureMap, StripMap, round_up
from microkernels.common.fixed_point import ELEMENT, ELEMENT_BYTES
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import block_bytes, part_sizes

from .element_polynomials import POLYNOMIALS
from .element_shape import ElementShape

__all__ = ["ElementLayout"]

_HEADER_WORDS = 2
#: Pieces of several in a line begin at multiples of so many elements.
_STEP = COLUMN_BYTES // ELEMENT_BYTES
#: Slots at least, which hide the memory's latency.
_LEAST_SLOTS = 4
#: Loads in flight at most; the array range check has 20 entries.
_MOST_LOADS = 16


@dataclass(frozen=True, kw_only=True)
class ElementLayout(BlockLayout):
    """Addresses of an element-wise layer; see the module's text.

    Attributes:
        shape: of the layer.
        source: the map that is read.
        target: the output; it shares no memory with the maps that are read.
        base: first address of all other data; a multiple of 32.
        other: the second map that is read, of an operation of two maps, else None.
        sharers: engines that share the layer, at least 1.
        scratchpad_bytes: size of the scratchpad.

    Raises:
        KernelError: maps that do not fit the layer or have different slices, a scratchpad that is
            too small, or a value outside its range.
    """

    shape: ElementShape
    source: FeatureMap
    target: FeatureMap
    other: FeatureMap | None = None
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = self.shape
        if (self.other is not None) != (shape.maps == 2):
            given = "no other map" if self.other is None else "another map"
            raise KernelError(f"{shape.operation} reads {shape.maps} map(s), and {given} is given")
        maps = {"source": self.source, "other": self.other, "target": self.target}
        for name, held in maps.items():
            if held is None:
                continue
            held.check_size(name, shape.width, shape.height, shape.channels)
            if isinstance(held, StripMap):
                raise KernelError("element-wise layers need maps without strips")
            if held.depth != self.source.depth:
                raise KernelError(
                    f"source has slices of {self.source.depth} channels, {name} of {held.depth}"
                )
        if self._most_elements < _STEP:
            least = self.results + self._least_pieces * COLUMN_BYTES
            raise KernelError(
                f"{shape.operation} needs a scratchpad of {least} bytes, not "
                f"{self.scratchpad_bytes}"
            )

    # Pieces.

    @property
    def _made(self) -> int:
        """Pieces beside those of the ring: results, the argument of a polynomial, and a part."""
        if self.shape.curve is not None:
            return 4
        return 3 if self.shape.operation in POLYNOMIALS else 2

    @property
    def _least_pieces(self) -> int:
        """Pieces that the scratchpad holds at least."""
        return self._made + _LEAST_SLOTS * self.shape.maps

    @property
    def _most_elements(self) -> int:
        """Elements of a piece at most: so many that the least number of pieces fits."""
        fitting = (self.scratchpad_bytes - self.results) // self._least_pieces
        return min(MAX_VL, fitting // COLUMN_BYTES * _STEP)

    @property
    def line(self) -> int:
        """Elements of a line."""
        return self.shape.height * self.source.depth

    @property
    def pieces(self) -> int:
        """Pieces of a line."""
        return -(-self.line // self._most_elements)

    @property
    def piece(self) -> int:
        """Elements of a piece."""
        return self.line if self.pieces == 1 else round_up(-(-self.line // self.pieces), _STEP)

    @property
    def overlap(self) -> int:
        """Elements that the last two pieces of a line both have."""
        return self.pieces * self.piece - self.line

    # Scratchpad.

    @property
    def piece_bytes(self) -> int:
        """Bytes of a piece in the scratchpad."""
        return round_up(self.piece * ELEMENT_BYTES, RANGE_BYTES)

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot."""
        return self.shape.maps * self.piece_bytes

    @property
    def results(self) -> int:
        """Scratchpad address of the results, after the constants."""
        return max(round_up(len(self.shape.constants) * ELEMENT_BYTES, RANGE_BYTES), RANGE_BYTES)

    @property
    def ring(self) -> int:
        """Scratchpad address of the ring."""
        return self.results + self._made * self.piece_bytes

    @property
    def slots(self) -> int:
        """Slots of the ring."""
        fitting = (self.scratchpad_bytes - self.ring) // self.slot_bytes
        return min(fitting, _MOST_LOADS // self.shape.maps)

    @property
    def ring_end(self) -> int:
        """First byte after the ring."""
        return self.ring + self.slots * self.slot_bytes

    # Memory.

    @property
    def _lines(self) -> list[tuple[int, int]]:
        """First channel and x of each line."""
        source = self.source
        channels = range(0, source.slices * source.depth, source.depth)
        return [(channel, x) for channel in channels for x in range(self.shape.width)]

    @property
    def line_words(self) -> int:
        """Words of a line's description."""
        return self.shape.maps + 1

    @property
    def _parts(self) -> list[int]:
        return part_sizes(len(self._lines), self.sharers, fixed=_HEADER_WORDS, each=self.line_words)

    @property
    def constants(self) -> int:
        """Address of the constants."""
        return self._block_end

    @property
    def end(self) -> int:
        """First byte after all data that this layout adds to the maps."""
        size = len(self.shape.constants) * ELEMENT_BYTES
        return self.constants + max(round_up(size, COLUMN_BYTES), COLUMN_BYTES)

    def store(self, memory: Writable) -> None:
        """Put all but the maps into ``memory``.

        Raises:
            isa.image.ImageError: the layout lies outside the memory.
        """
        constants = np.array(self.shape.constants, ELEMENT)
        memory.write(self.constants, constants.tobytes())
        memory.write(self.parameters, self.block(self.parameters))

    def block(self, address: int) -> bytes:
        """The parameter block, for ``address``; see
        :meth:`microkernels.nn.conv_layout.ConvLayout.block`."""
        maps = [held for held in (self.source, self.other, self.target) if held is not None]
        words = []
        for member, size in enumerate(self._parts):
            lines = self._lines[member :: self.sharers]
            part = [len(lines), self.constants]
            for channel, x in lines:
                part += [held.address(x, 0, channel) for held in maps]
            words.append(part + [0] * (size - len(part)))
        return block_bytes(address, words)
