"""Layout and kernel of element-wise layers.

The work is divided into *runs*, which are contiguous in each map: a column of pixels of one slice
of the channels or, of maps without pixels around them, a slice, or all slices if nothing lies
between them. A run is divided into *lines*, so that the engines end at about the same time, and a
line into *pieces*, both of equal length. If they do not divide it evenly, the last one overlaps the
previous one, and the same elements are computed twice.

The scratchpad contains the constants, two pieces of results, for a polynomial a piece of its
argument, for a curve also a piece of a part of it, and a ring of *slots*: one piece of each input
map. All start at multiples of :data:`isa.limits.RANGE_BYTES`.

A line's words are its addresses in each input map and in the target.

The layer is memory-bound, so a ring of pieces is in flight while the vector unit computes one. A
``v.drain`` completes each result before it is stored and its slot is reloaded. The result is
separate from the slot, so the load does not wait for the store.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isa.limits import RANGE_BYTES
from isa.program import Program
from isa.table import MAX_VL
from microkernels.common.builder import WORD_BYTES
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES, FeatureMap, part_starts, round_up
from microkernels.common.fixed_point import ELEMENT_BYTES, NUMBERS, packed
from microkernels.common.memory import Writable
from microkernels.common.scratchpad_plan import ScratchpadPlan
from support.errors import counted

from .curves import POLYNOMIALS
from .element_shape import ElementOperation, operation_steps
from .line import LineLayout, StreamKernel

#: If a line has several pieces, they start at multiples of this many elements.
_STEP = COLUMN_BYTES // ELEMENT_BYTES
#: Minimum slots, which hide the memory's latency.
_LEAST_SLOTS = 4
#: Elements that the vector unit computes per cycle.
_LANES = WORD_BYTES // ELEMENT_BYTES
#: Lines per engine that a run is divided into, at most.
_MOST_LINES = 4
#: Approximate cycles of a piece without its vector instructions, and of one of these before its
#: result can be used, besides those of its elements.
_PIECE_CYCLES, _LATENCY = 40, 9
#: Maximum loads in flight; the array range check has 20 entries.
_MOST_LOADS = 16


@dataclass(frozen=True, kw_only=True)
class ElementLayout(LineLayout):
    """Addresses of an element-wise layer; see the module's text.

    Attributes:
        shape: the operation.
        other: the second input map of an operation on two maps, otherwise None.

    Raises:
        KernelError: maps of different sizes or slices or not as many as the operation takes, a
            scratchpad that is too small, or a value out of range.
    """

    shape: ElementOperation
    other: FeatureMap | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = self.shape
        if (self.other is not None) != (shape.maps == 2):
            number = "no other map" if self.other is None else "another map"
            raise KernelError(
                f"{shape.function} reads {counted(shape.maps, 'map')}, but {number} is given"
            )
        size = (self.source.width, self.source.height, self.source.channels)
        self._check_maps("element-wise layers need", *[size] * len(self.maps))
        if self._most_elements < _STEP:
            least = self.results + self._least_pieces * COLUMN_BYTES
            raise KernelError(
                f"{shape.function} needs a scratchpad of {least} bytes, not {self.scratchpad_bytes}"
            )

    @property
    def maps(self) -> Mapping[str, FeatureMap]:
        second = {} if self.other is None else {"other": self.other}
        return {"source": self.source, **second, "target": self.target}

    # Pieces.

    @property
    def _partial(self) -> tuple[str, ...]:
        """Pieces on the way to a result: a polynomial's argument, and a part of a curve."""
        if self.shape.curve is not None:
            return ("unit", "part")
        return ("unit",) if self.shape.function in POLYNOMIALS else ()

    @property
    def _least_pieces(self) -> int:
        """Minimum pieces that the scratchpad must contain."""
        return 2 + len(self._partial) + _LEAST_SLOTS * self.shape.maps

    @property
    def _most_elements(self) -> int:
        """Maximum elements per piece: the minimum number of pieces must fit."""
        fitting = (self.scratchpad_bytes - self.results) // self._least_pieces
        return min(MAX_VL // packed(self.shape.bits), fitting // COLUMN_BYTES * _STEP)

    @property
    def _apart(self) -> bool:
        """Whether columns are apart from each other in a map."""
        column = self.source.height * self.source.depth * ELEMENT_BYTES
        return any(feature_map.x_step != column for feature_map in self.maps.values())

    @property
    def _channels(self) -> range:
        """First channels of runs."""
        source = self.source
        size = source.width * source.height * source.depth * ELEMENT_BYTES
        joined = all(feature_map.slice_step == size for feature_map in self.maps.values())
        return range(0, source.slices * source.depth, source.depth)[: 1 if joined else None]

    @property
    def run(self) -> int:
        """Elements per run."""
        source = self.source
        column = source.height * source.depth
        if self._apart:
            return column
        return column * source.width * source.slices // len(self._channels)

    @cached_property
    def line(self) -> int:
        """Elements per line."""
        lengths = [self.run]
        runs = len(self._channels) * (self.source.width if self._apart else 1)
        for lines in range(2, min(self.run // _STEP, _MOST_LINES * self.sharers) + 1):
            lengths.append(round_up(-(-self.run // lines), _STEP))

        def cycles(line: int) -> int:
            pieces = -(-line // self._most_elements)
            vectors = self.shape.per_number * (_LATENCY + -(-line // pieces // _LANES))
            turns = -(-runs * -(-self.run // line) // self.sharers)
            return turns * pieces * (_PIECE_CYCLES + vectors)

        return min(lengths, key=cycles)

    @property
    def pieces(self) -> int:
        """Pieces per line."""
        return -(-self.line // self._most_elements)

    @property
    def piece(self) -> int:
        """Elements per piece."""
        return self.line if self.pieces == 1 else round_up(-(-self.line // self.pieces), _STEP)

    @property
    def overlap(self) -> int:
        """Elements shared by the last two pieces of a line."""
        return self.pieces * self.piece - self.line

    # Scratchpad.

    @property
    def results(self) -> int:
        """Scratchpad address of the results, after the constants."""
        return max(round_up(len(self.shape.constants) * ELEMENT_BYTES, RANGE_BYTES), RANGE_BYTES)

    @cached_property
    def scratchpad(self) -> ScratchpadPlan:
        """The constants, two results, intermediate values, and the ring."""
        piece = round_up(self.piece * ELEMENT_BYTES, RANGE_BYTES)
        plan = ScratchpadPlan({"constants": self.results, "results": 2 * piece})
        for name in self._partial:
            plan.take(name, piece)
        maps = self.shape.maps
        plan.take_ring(maps, piece, most=_MOST_LOADS // maps, room=self.scratchpad_bytes)
        return plan

    # Memory.

    @property
    def _lines(self) -> list[tuple[int, int]]:
        """Each line's first channel, and its place among the elements of a slice or of all."""
        columns = range(self.source.width if self._apart else 1)
        starts = part_starts(self.run, self.line)
        return [
            (channel, x * self.run + start)
            for channel in self._channels
            for x in columns
            for start in starts
        ]

    def _words(self, line: tuple[int, int]) -> list[int]:
        channel, place = line
        x, start = divmod(place, self.run)
        maps = self.maps.values()
        return [each.address(x, 0, channel) + start * ELEMENT_BYTES for each in maps]

    @property
    def end(self) -> int:
        size = len(self.shape.constants) * ELEMENT_BYTES
        return self.constants + max(round_up(size, COLUMN_BYTES), COLUMN_BYTES)

    def store(self, memory: Writable) -> None:
        """Write everything except the maps to ``memory``.

        Raises:
            isa.image.ImageError: the layout is outside the memory.
        """
        constants = np.array(self.shape.constants, NUMBERS[self.shape.bits])
        self._store_fixed(memory, constants.tobytes())

    def generate(self, vault_bits: int | None) -> Program:
        source = self.source
        name = f"{self.shape.function}_{source.width}x{source.height}x{source.channels}.s"
        return _ElementKernel(self, vault_bits).build().program(name)


class _ElementKernel(StreamKernel[ElementLayout]):
    def __init__(self, layout: ElementLayout, vault_bits: int | None) -> None:
        shape, source, scratchpad = layout.shape, layout.source, layout.scratchpad
        super().__init__(
            layout,
            vault_bits,
            f"Element by element: {shape.function} of {counted(shape.maps, 'map')} of "
            f"{source.width} x {source.height} x {source.channels}, with "
            f"{', '.join(map(str, shape.constants)) or 'no constants'}.",
            scratchpad,
            bits=shape.bits,
        )
        w = self.writer
        reg = w.register
        self.constants = reg("constants", "address of the constants")
        self.stored_line = reg("stored_line", "next line to store: its address in the description")
        self.next_out = reg("next_out", "that line: its address")
        self.out = reg("out", "address of the next piece to store")
        self.left = reg("left", "pieces left to store in the line")
        self.slot = reg("use", "slot in use")
        self.result = reg("result", "result")
        self.stored = reg("stored", "the result before")
        self.described = reg("described", "address of the description of the line to load next")
        self.ahead = self.described
        self.load_lines = reg("load_lines", "lines left to load")
        self.load_left = reg("load_left", "pieces left to load in the line")
        self.fill = reg("load_slot", "slot to load next")
        self.tmp = reg("tmp", "temporary")
        numbers = range(shape.maps)
        self.next_from = [reg(f"next_from{n}", f"line to load next, map {n}") for n in numbers]
        self.load_from = [reg(f"load_from{n}", f"next piece to load, map {n}") for n in numbers]
        self.unit = self.part = self.number = ""
        if shape.function in POLYNOMIALS or shape.curve is not None:
            self.unit = w.constant("unit", scratchpad["unit"], "argument of a polynomial")
        if shape.curve is not None:
            self.part = w.constant("part", scratchpad["part"], "the part")
            self.number = reg("number", "place of the next constant")
        self.piece = w.constant("piece", layout.piece * self.packed, "numbers of a piece")
        self.ring = w.constant("ring", scratchpad.ring, "ring")
        self.ring_end = w.constant("ring_end", scratchpad.used, "its end")
        number_bytes = NUMBERS[shape.bits].itemsize
        self.places = [
            w.constant(f"constant{n}", n * number_bytes, "place of a constant")
            for n in range(1 if shape.curve is not None else len(shape.constants))
        ]
        if layout.overlap:
            self.two = w.constant("two", 2, "pieces left before the last one")

    def _begin(self) -> None:
        w, layout = self.writer, self.layout
        shape = layout.shape
        if self.places:
            w.op("li", self.tmp, len(shape.constants))
            w.load(self.places[0], self.constants, self.tmp, note="constants")
        if shape.fraction_bits is not None:
            self._set("fx", shape.fraction_bits)
        w.op("set.vl", self.piece)
        w.op("li", self.result, layout.results)
        w.op("li", self.stored, layout.results + layout.scratchpad.vector)
        w.op("add", self.stored_line, self.described, shape.maps * WORD_BYTES)
        self._describe()
        self._begin_stream()
        self._fill_ring(layout.scratchpad.slots, self.left)

    def _line(self) -> None:
        w = self.writer
        w.op("mov", self.out, self.next_out)
        self._describe()
        w.op("li", self.left, self.layout.pieces)
        w.note("A piece.")
        w.label("piece_turn")
        self._piece()
        w.op("bne", self.left, w.zero, "piece_turn")

    @property
    def _line_loads(self) -> int:
        return self.layout.pieces

    def _describe(self) -> None:
        """Read the addresses of the next line to store."""
        w = self.writer
        w.read(self.next_out, self.stored_line)
        w.op("add", self.stored_line, self.stored_line, self.layout.shape.maps * WORD_BYTES)

    def _advance(self, left: str, *addresses: str) -> None:
        """Advance to the next of ``left`` pieces of a line."""
        w, layout = self.writer, self.layout
        for address in addresses:
            w.offset(address, address, layout.piece * ELEMENT_BYTES)
        if layout.overlap:
            with w.unless("bne", left, self.two):
                for address in addresses:
                    w.offset(address, address, -layout.overlap * ELEMENT_BYTES)
        w.op("sub", left, left, 1)

    def _load(self, name: str) -> None:
        """Load the next piece, if any, into the next slot."""
        w, layout = self.writer, self.layout
        done = f"{name}_done"
        w.op("beq", self.load_lines, w.zero, done)
        for number, address in enumerate(self.load_from):
            w.load(self.fill, address, self.piece, note=f"piece of map {number}")
            w.offset(self.fill, self.fill, layout.scratchpad.vector)
        with w.unless("bne", self.fill, self.ring_end):
            w.op("mov", self.fill, self.ring)
        self._advance(self.load_left, *self.load_from)
        w.op("bne", self.load_left, w.zero, done)
        w.op("sub", self.load_lines, self.load_lines, 1)
        w.op("beq", self.load_lines, w.zero, done)
        self._begin_load_line()
        w.label(done)

    def _piece(self) -> None:
        w, layout = self.writer, self.layout
        self._compute()
        w.op("v.drain")
        w.store(self.out, self.result, self.piece)
        self._load("next")
        w.swap(self.result, self.stored, self.tmp)
        w.advance_ring(self.slot, layout.scratchpad.slot, self.ring, self.ring_end)
        self._advance(self.left, self.out)

    def _compute(self) -> None:
        """Compute the result of the current slot."""
        w, shape = self.writer, self.layout.shape
        places: dict[str | int, str] = {
            "x": self.slot,
            "other": self.tmp,
            "unit": self.unit,
            "part": self.part or self.result,
            "result": self.result,
        }
        if shape.maps == 2:
            w.offset(self.tmp, self.slot, self.layout.scratchpad.vector)
        if self.number:
            places |= dict.fromkeys(range(len(shape.constants)), self.number)
            w.op("mov", self.number, self.places[0])
        else:
            places |= dict(enumerate(self.places))
        for step in operation_steps(shape):
            self._step(step, places)
            if self.number and isinstance(step.second, int):
                w.op("add", self.number, self.number, ELEMENT_BYTES)
