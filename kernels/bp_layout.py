"""Where a tile of belief propagation lies in DRAM, and the parameter block of its program.

Tile. All that belongs to a pixel is one *record* of five vectors of labels, in this order::

    up | down | data cost | left | right        (messages named as in bp_problem.Direction)

A sweep along rows reads the first three, a sweep along columns the last three, so one load of three
vectors fetches what an update needs beside the message that it has just made; it then writes one
vector of the next record. Vectors of up to 32 bytes are padded to a power of two of at least 8
bytes and never cross a 32-byte DRAM column; longer ones are padded to a multiple of 8. Records are
padded to a power of two that divides a 256-byte DRAM row, or to a multiple of rows. For 16 labels
of 16 bits a record is one row (160 of 256 bytes used), and each update opens one row.

Rows of pixels follow each other at a *pitch* of :data:`BANK_SKEW` DRAM rows more than a multiple of
all banks. Neighbouring lines, which are worked on at the same time, then lie in different banks in
both directions: eight rows at one column take the banks 0 9 2 11 4 13 6 15, eight columns at one
row the banks 0 to 7 and, one row on, 9 to 16.

Before the tile, from ``base`` on: the parameter block (:mod:`kernels.bp_parameters`), the flags of
the PEs that share the tile (:mod:`kernels.barrier`), the smoothness costs and their transpose.
"""

from dataclasses import dataclass

import numpy as np

from isa.image import DramImage

from .barrier import FlagTable
from .bp_parameters import Run, SweepPlace, block_bytes, most_words, runs
from .bp_problem import BpProblem, Direction, Messages, check_messages, element_type
from .bp_share import share_sweep
from .errors import KernelError

__all__ = [
    "BANKS",
    "BANK_SKEW",
    "LOADED_VECTORS",
    "ROW_BYTES",
    "BpLayout",
    "pack",
    "unpack",
    "vector_stride",
]

#: Bytes of a DRAM column and row, and banks of a vault (design.md, section 1).
COLUMN_BYTES = 32
ROW_BYTES = 256
BANKS = 16
#: DRAM rows by which the pitch exceeds a multiple of all banks.
BANK_SKEW = 9
#: Vectors in a record, and how many of them an update loads at once.
RECORD_VECTORS = 5
LOADED_VECTORS = 3

#: Place of each vector in a record.
_PLACE = {Direction.UP: 0, Direction.DOWN: 1, Direction.LEFT: 3, Direction.RIGHT: 4}
_COST_PLACE = 2
_ALIGNMENT = BANKS * ROW_BYTES


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def vector_stride(labels: int, bits: int) -> int:
    """Bytes from a vector of ``labels`` elements of ``bits`` bits to the next one of its record."""
    used = labels * element_type(bits).itemsize
    if used > COLUMN_BYTES:
        return _round_up(used, 8)
    return max(8, 1 << (used - 1).bit_length())


@dataclass(frozen=True, kw_only=True)
class BpLayout:
    """Addresses of a tile; see the module's text.

    Attributes:
        width, height: pixels, at least 1 each.
        labels: at least 1.
        bits: element width (:data:`kernels.bp_problem.BP_WIDTHS`).
        base: first byte; a multiple of 4096 (all banks' rows).
        sharers: PEs that share the tile; at least 1.

    Raises:
        KernelError: a value outside its range.
    """

    width: int
    height: int
    labels: int
    bits: int = 16
    base: int = 0
    sharers: int = 1

    def __post_init__(self) -> None:
        element_type(self.bits)
        for name in ("width", "height", "labels", "sharers"):
            if getattr(self, name) < 1:
                raise KernelError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.base < 0 or self.base % _ALIGNMENT:
            raise KernelError(f"base must be a multiple of {_ALIGNMENT}, not {self.base}")

    @classmethod
    def of(cls, problem: BpProblem, *, base: int = 0, sharers: int = 1) -> "BpLayout":
        """The layout of ``problem``."""
        return cls(
            width=problem.width,
            height=problem.height,
            labels=problem.labels,
            bits=problem.bits,
            base=base,
            sharers=sharers,
        )

    @property
    def vector_bytes(self) -> int:
        """Bytes from one vector of a record to the next."""
        return vector_stride(self.labels, self.bits)

    @property
    def record_bytes(self) -> int:
        """Bytes from a pixel to its right neighbour."""
        used = RECORD_VECTORS * self.vector_bytes
        return _round_up(used, ROW_BYTES) if used > ROW_BYTES else 1 << (used - 1).bit_length()

    @property
    def pitch(self) -> int:
        """Bytes from a pixel to the one below it."""
        skew = BANK_SKEW * ROW_BYTES
        return _round_up(max(0, self.width * self.record_bytes - skew), _ALIGNMENT) + skew

    @property
    def flags(self) -> FlagTable:
        """The flags of the PEs that share the tile."""
        # Behind the parameter block, hence never at address 0, which stands for no flag.
        block = 8 * most_words(self.sharers, len(Direction))
        return FlagTable(self.base + _round_up(block, COLUMN_BYTES), self.sharers)

    @property
    def matrix(self) -> int:
        """Address of the smoothness costs, rows contiguous."""
        return self.flags.end

    @property
    def transposed(self) -> int:
        """Address of the transposed smoothness costs."""
        return self.matrix + _round_up(self.labels**2 * self.bits // 8, COLUMN_BYTES)

    @property
    def parameters(self) -> int:
        """Address of the parameter block, for the launch."""
        return self.base

    @property
    def tile(self) -> int:
        """Address of pixel (0, 0)'s record."""
        return _round_up(2 * self.transposed - self.matrix, _ALIGNMENT)

    @property
    def end(self) -> int:
        """First byte behind everything."""
        return self.tile + self.height * self.pitch

    def message(self, direction: Direction, x: int, y: int) -> int:
        """Address of the message that arrives at pixel (x, y) moving in ``direction``."""
        return self._vector(_PLACE[direction], x, y)

    def data_cost(self, x: int, y: int) -> int:
        """Address of the data costs of pixel (x, y)."""
        return self._vector(_COST_PLACE, x, y)

    def _vector(self, place: int, x: int, y: int) -> int:
        return self.tile + y * self.pitch + x * self.record_bytes + place * self.vector_bytes

    def sweep(self, direction: Direction) -> SweepPlace:
        """Where a sweep begins and how it moves."""
        along, across = self.record_bytes, self.pitch
        pixels = self.width
        loaded = _PLACE[Direction.UP]
        if not direction.horizontal:
            along, across = across, along
            pixels = self.height
            loaded = _COST_PLACE
        x = self.width - 1 if direction is Direction.LEFT else 0
        y = self.height - 1 if direction is Direction.UP else 0
        return SweepPlace(
            load=self._vector(loaded, x, y),
            edge=self.message(direction, x, y),
            step=-along if direction.reverse else along,
            line_step=across,
            updates=pixels - 1,
            costs=self.transposed if direction.reverse else self.matrix,
        )

    def runs(self, member: int) -> list[Run]:
        """What the PE in slot ``member`` (0..sharers - 1) does in an iteration."""
        found = []
        for direction in Direction:
            place = self.sweep(direction)
            lines = self.height if direction.horizontal else self.width
            share = share_sweep(lines, place.updates, self.sharers)[member]
            found += runs(place, share, self.flags, member)
        return found

    def parameter_block(self, iterations: int) -> bytes:
        """The parameter block for ``iterations`` (0 or more) iterations.

        Raises:
            KernelError: a negative number of iterations.
        """
        plans = [self.runs(member) for member in range(self.sharers)]
        return block_bytes(self.parameters, iterations, self.flags, plans)


def _check(layout: BpLayout, problem: BpProblem) -> None:
    expected = BpLayout.of(problem, base=layout.base, sharers=layout.sharers)
    if layout != expected:
        raise KernelError(f"the layout is for {layout}, the problem needs {expected}")


def pack(
    problem: BpProblem,
    layout: BpLayout,
    memory: DramImage,
    *,
    iterations: int,
    messages: Messages | None = None,
) -> None:
    """Write parameter block, flags, smoothness costs, data costs and messages (None: all 0).

    Raises:
        KernelError: a layout for another problem, negative iterations, messages of a wrong shape.
    """
    _check(layout, problem)
    given = problem.no_messages() if messages is None else check_messages(problem, messages)
    memory.write(layout.flags.base, layout.flags.words())
    memory.write(layout.parameters, layout.parameter_block(iterations))
    memory.write(layout.matrix, np.ascontiguousarray(problem.smoothness).tobytes())
    memory.write(layout.transposed, np.ascontiguousarray(problem.smoothness.T).tobytes())
    tile = np.zeros((layout.height, layout.pitch), np.uint8)
    vectors = {_COST_PLACE: problem.data_costs}
    vectors |= {place: given[direction] for direction, place in _PLACE.items()}
    for place, values in vectors.items():
        _plane(tile, layout, place)[...] = np.ascontiguousarray(values).view(np.uint8)
    memory.write(layout.tile, tile.tobytes())


def unpack(layout: BpLayout, memory: DramImage) -> Messages:
    """Read the messages of all directions back."""
    size = layout.height * layout.pitch
    tile = np.frombuffer(memory.read(layout.tile, size), np.uint8)
    tile = tile.reshape(layout.height, layout.pitch)
    dtype = element_type(layout.bits)
    shape = (len(Direction), layout.height, layout.width, layout.labels)
    messages = np.empty(shape, dtype)
    for direction, place in _PLACE.items():
        plane = np.ascontiguousarray(_plane(tile, layout, place))
        messages[direction] = plane.view(dtype)
    return messages


def _plane(tile: np.ndarray, layout: BpLayout, place: int) -> np.ndarray:
    """View ``[y, x, byte]`` of one vector of every record."""
    records = tile[:, : layout.width * layout.record_bytes]
    records = records.reshape(layout.height, layout.width, layout.record_bytes)
    start = place * layout.vector_bytes
    view: np.ndarray = records[:, :, start : start + layout.labels * layout.bits // 8]
    return view
