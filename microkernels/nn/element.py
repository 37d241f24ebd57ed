"""Element-wise layers: operations, sizes, golden model, layout and kernel.

An output element is computed from the elements at its place in one map or in two. All maps of a
layer have one size. Products and logistic functions have fraction bits; sums and products saturate.

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

Memory is the limit, so a ring
of pieces is in flight while the vector unit computes one. A ``v.drain`` completes each result
before it is stored and its slot is reloaded. The result lies apart from the slot, so that the load
does not wait for the store.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from isa.program import Program
from isa.table import MAX_VL
from isa.timing import RANGE_BYTES, WORD_BYTES
from microkernels.common.block_layout import BlockLayout
from microkernels.common.builder import DEFAULT_SCRATCHPAD, KernelBuilder, launch_registers
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, FeatureMap, StripMap, round_up
from microkernels.common.fixed_point import (
    ELEMENT,
    ELEMENT_BYTES,
    FRACTION_LIMIT,
    HIGHEST,
    LOWEST,
    Elements,
    add,
    check_elements,
    check_fraction,
    multiply,
    subtract,
)
from microkernels.common.logistic import sigmoid, tanh
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import block_bytes, part_sizes

from .curves import MOST_FRACTION, POLYNOMIALS, UNIT_FRACTION, Curve, check_curve, curve, polynomial

__all__ = [
    "FUNCTIONS",
    "OPERATIONS",
    "SLOPE_FRACTION",
    "ElementLayout",
    "ElementShape",
    "element",
    "element_program",
]

#: Fraction bits of the slope of ``leaky``.
SLOPE_FRACTION = FRACTION_LIMIT
#: Attributes of :class:`ElementShape` that each operation needs: of two maps, and of one.
_OF_TWO: dict[str, tuple[str, ...]] = {
    "add": (),
    "subtract": (),
    "maximum": (),
    "minimum": (),
    "multiply": ("fraction",),
}
_OF_ONE: dict[str, tuple[str, ...]] = {
    "relu": (),
    "absolute": (),
    "affine": ("factor", "fraction", "offset"),
    "clip": ("low", "high"),
    "leaky": ("slope",),
    "tanh": ("fraction",),
    "sigmoid": ("fraction",),
    "gelu": ("fraction",),
    "erf": ("fraction",),
    "curve": ("curve",),
}
_NEEDS: dict[str, tuple[str, ...]] = _OF_TWO | _OF_ONE
#: Operations of one map, and all.
FUNCTIONS = tuple(_OF_ONE)
OPERATIONS = tuple(_NEEDS)


@dataclass(frozen=True, kw_only=True)
class ElementShape:
    """Operation and sizes of an element-wise layer.

    Attributes:
        width, height, channels: of each map, at least 1 each.
        operation: ``add``, ``subtract``, ``maximum``, ``minimum`` and ``multiply`` are of two
            maps; ``relu``, ``absolute``, ``affine`` (``factor`` times x, plus ``offset``),
            ``clip``, ``leaky`` (the larger of x and ``slope`` times x), ``tanh``, ``sigmoid``,
            ``gelu``, ``erf`` and ``curve`` of one.
        fraction: of ``multiply`` and ``affine``, bits by which products are shifted right; of
            ``tanh``, ``sigmoid``, ``gelu`` and ``erf``, fraction bits of operand and result; 0..15,
            of the last two 0..14.
        factor, offset: of ``affine``, elements.
        low, high: least and greatest result of ``clip``; elements, ``low`` not above ``high``.
        curve: of ``curve``, the function (:mod:`microkernels.nn.curves`).
        slope: of ``leaky``, an element with :data:`SLOPE_FRACTION` fraction bits: from -1 to just
            below 1.
        relu: negative sums become 0, of ``add``.

    Raises:
        KernelError: a value outside its range, one that the operation needs and that is None, or
            one that it does not have.
    """

    width: int
    height: int
    channels: int
    operation: str
    fraction: int | None = None
    low: int | None = None
    high: int | None = None
    slope: int | None = None
    factor: int | None = None
    offset: int | None = None
    curve: Curve | None = None
    relu: bool = False

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("width", "height", "channels"):
            CHECK.at_least(name, getattr(self, name), 1)
        CHECK.one_of("operation", self.operation, OPERATIONS)
        for name in ("fraction", "low", "high", "slope", "factor", "offset", "curve"):
            value = getattr(self, name)
            if (value is not None) != (name in _NEEDS[self.operation]):
                raise KernelError(
                    f"{self.operation} {'needs' if value is None else 'has no'} {name}"
                )
            if value is not None and name not in ("fraction", "curve"):
                CHECK.within(name, value, LOWEST, HIGHEST)
        if self.fraction is not None:
            check_fraction(self.fraction)
            if self.operation in POLYNOMIALS:
                CHECK.within("fraction bits", self.fraction, 0, MOST_FRACTION)
        if self.curve is not None:
            check_curve(self.curve)
        if self.low is not None and self.high is not None and self.low > self.high:
            raise KernelError(f"low must be at most high, {self.high}, not {self.low}")
        if self.relu and self.operation != "add":
            raise KernelError(f"relu can follow add, not {self.operation}")

    @property
    def maps(self) -> int:
        """Maps that are read: 1 or 2."""
        return 2 if self.operation in _OF_TWO else 1

    @property
    def constants(self) -> tuple[int, ...]:
        """Elements that all elements of a map meet."""
        match self.operation:
            case "clip":
                assert self.low is not None
                assert self.high is not None
                return (self.low, self.high)
            case "leaky":
                assert self.slope is not None
                return (self.slope,)
            case "affine":
                assert self.factor is not None
                assert self.offset is not None
                return (self.factor, self.offset)
            case "absolute":
                return (-1,)
            case "relu":
                return (0,)
            case "curve":
                assert self.curve is not None
                return self.curve.constants
            case "gelu" | "erf":
                return POLYNOMIALS[self.operation].constants(self.fraction or 0)
            case _:
                return (0,) if self.relu else ()

    @property
    def fraction_bits(self) -> int | None:
        """The setting FX of the vector unit; None: any."""
        if self.operation == "absolute":
            return 0
        return SLOPE_FRACTION if self.operation == "leaky" else self.fraction

    @property
    def operations(self) -> int:
        """Additions, multiplications, comparisons and functions of an element."""
        if self.curve is not None:
            return self.curve.operations
        if self.operation in POLYNOMIALS:
            return 2 * len(POLYNOMIALS[self.operation].coefficients) + 4
        return 2 if self.relu or self.operation in ("clip", "leaky", "affine", "absolute") else 1


def element(shape: ElementShape, image: Elements, other: Elements | None = None) -> Elements:
    """Golden model of the element-wise kernel, bit-exact.

    Parameters:
        image: height x width x channels elements.
        other: likewise, of an operation of two maps, else None.

    Returns:
        height x width x channels elements.

    Raises:
        KernelError: an array of another shape, values beyond 16 bits, one map where the operation
            has two or the reverse.
    """
    size = (shape.height, shape.width, shape.channels)
    image = check_elements("image", image, size)
    if (other is not None) != (shape.maps == 2):
        raise KernelError(f"{shape.operation} is an operation of {shape.maps} map(s)")
    if other is not None:
        other = check_elements("other", other, size)
        if shape.operation == "add":
            total = add(image, other)
            return np.maximum(total, 0) if shape.relu else total
        if shape.operation == "subtract":
            return subtract(image, other)
        if shape.operation == "maximum":
            return np.maximum(image, other)
        if shape.operation == "minimum":
            return np.minimum(image, other)
        return multiply(image, other, shape.fraction or 0)
    match shape.operation:
        case "affine":
            product = multiply(image, np.array(shape.factor), shape.fraction or 0)
            return add(product, np.array(shape.offset))
        case "absolute":
            return np.maximum(image, multiply(image, np.array(-1), 0))
        case "leaky":
            sloped = multiply(image, np.array(shape.slope), SLOPE_FRACTION)
            return np.maximum(image, sloped)
        case "tanh":
            return tanh(image, shape.fraction or 0)
        case "sigmoid":
            return sigmoid(image, shape.fraction or 0)
        case "gelu" | "erf":
            return polynomial(shape.operation, image, shape.fraction or 0)
        case "clip":
            return np.clip(image, shape.low, shape.high)
        case "curve":
            assert shape.curve is not None
            return curve(shape.curve, image)
        case _:
            return np.maximum(image, 0)


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


#: Operation of two maps -> its instruction.
_TWO_MAP_INSTRUCTIONS = {
    "add": "v.v.add",
    "subtract": "v.v.sub",
    "maximum": "v.v.max",
    "minimum": "v.v.min",
    "multiply": "v.v.mul",
}


@CHECK.arguments
@lru_cache(maxsize=64)
def element_program(layout: ElementLayout, *, vault_bits: int | None = None) -> Program:
    """The program of an element-wise layer with these sizes and addresses.

    Parameters:
        vault_bits: address bits of a vault, where the start register ``parameters`` is an address
            within it (:meth:`microkernels.common.builder.KernelBuilder.start`).
    """
    shape = layout.shape
    name = f"{shape.operation}_{shape.width}x{shape.height}x{shape.channels}.s"
    return _ElementKernel(layout, vault_bits).build().program(name)


class _ElementKernel:
    """Registers and code of the kernel."""

    def __init__(self, layout: ElementLayout, vault_bits: int | None) -> None:
        self.layout = layout
        self.vault_bits = vault_bits
        shape = layout.shape
        self.writer = w = KernelBuilder(
            f"Element by element: {shape.operation} of {shape.maps} map(s) of {shape.width} x "
            f"{shape.height} x {shape.channels}.",
            "Generated by microkernels.nn.element, which explains it.",
            "",
            f"Scratchpad ({layout.ring_end} bytes)",
            f"  {0:>4} constants: {', '.join(map(str, shape.constants)) or 'none'}",
            f"  {layout.results:>4} two pieces of results",
            f"  {layout.ring:>4} ring of {layout.slots} slots of {layout.slot_bytes} bytes",
            launch=launch_registers(vault_bits),
            place_drains=True,
        )
        reg = w.register
        self.lines = reg("lines", "lines left")
        self.constants = reg("constants", "address of the constants")
        self.described = reg("described", "next line to store: its address in the description")
        self.next_out = reg("next_out", "that line: its address")
        self.out = reg("out", "address of the next piece to store")
        self.left = reg("left", "pieces left to store in the line")
        self.slot = reg("use", "slot in use")
        self.made = reg("made", "result")
        self.stored = reg("stored", "the result before")
        self.ahead = reg("ahead", "address of the description of the line to load next")
        self.load_lines = reg("load_lines", "lines left to load")
        self.load_left = reg("load_left", "pieces left to load in the line")
        self.fill = reg("load_slot", "slot to load next")
        self.a = reg("a", "for the moment")
        numbers = range(shape.maps)
        self.next_from = [reg(f"next_from{n}", f"line to load next, map {n}") for n in numbers]
        self.load_from = [reg(f"load_from{n}", f"next piece to load, map {n}") for n in numbers]
        if shape.operation in POLYNOMIALS:
            unit = layout.results + 2 * layout.piece_bytes
            self.unit = w.constant("unit", unit, "argument of the polynomial")
        if shape.curve is not None:
            unit = layout.results + 2 * layout.piece_bytes
            self.unit = w.constant("unit", unit, "argument of a part of the curve")
            self.part = w.constant("part", unit + layout.piece_bytes, "the part")
            self.number = reg("number", "place of the next constant")
        self.piece = w.constant("piece", layout.piece, "elements of a piece")
        self.ring = w.constant("ring", layout.ring, "ring")
        self.ring_end = w.constant("ring_end", layout.ring_end, "its end")
        self.places = [
            w.constant(f"constant{n}", n * ELEMENT_BYTES, "place of a constant")
            for n in range(1 if shape.curve is not None else len(shape.constants))
        ]
        if layout.overlap:
            self.two = w.constant("two", 2, "pieces left before the last one")

    def build(self) -> KernelBuilder:
        """The whole program."""
        w, layout = self.writer, self.layout
        maps = layout.shape.maps
        w.start((self.lines, self.constants), self.ahead, vault_bits=self.vault_bits)
        with w.unless("beq", self.lines, w.zero):
            if self.places:
                w.op("li", self.a, len(layout.shape.constants))
                w.load(self.places[0], self.constants, self.a, note="constants")
            if layout.shape.fraction_bits is not None:
                w.op("li", self.a, layout.shape.fraction_bits)
                w.op("set.fx", self.a)
            w.op("set.vl", self.piece)
            w.op("li", self.made, layout.results)
            w.op("li", self.stored, layout.results + layout.piece_bytes)
            w.op("add", self.described, self.ahead, maps * WORD_BYTES)
            self._describe()
            w.note("Fill the ring.")
            w.op("mov", self.load_lines, self.lines)
            self._next_from()
            self._begin_load_line()
            w.op("mov", self.fill, self.ring)
            w.op("li", self.left, layout.slots)
            w.label("fill")
            self._load("fill")
            w.op("sub", self.left, self.left, 1)
            w.op("bne", self.left, w.zero, "fill")
            w.op("mov", self.slot, self.ring)
            w.note("A line.")
            with w.loop("line", self.lines):
                w.op("mov", self.out, self.next_out)
                self._describe()
                w.op("li", self.left, layout.pieces)
                w.note("A piece.")
                w.label("piece_turn")
                self._piece()
                w.op("bne", self.left, w.zero, "piece_turn")
        w.op("halt")
        return w

    def _describe(self) -> None:
        """Read where the next line to store lies."""
        w = self.writer
        w.read(self.next_out, self.described)
        w.op("add", self.described, self.described, self.layout.shape.maps * WORD_BYTES)

    def _next_from(self) -> None:
        """Read where the line to load after the next one lies."""
        w = self.writer
        for register in self.next_from:
            w.read(register, self.ahead)
        w.op("add", self.ahead, self.ahead, WORD_BYTES)

    def _begin_load_line(self) -> None:
        w = self.writer
        for register, source in zip(self.load_from, self.next_from, strict=True):
            w.op("mov", register, source)
        self._next_from()
        w.op("li", self.load_left, self.layout.pieces)

    def _advance(self, left: str, *addresses: str) -> None:
        """Go on to the next of ``left`` pieces of a line."""
        w, layout = self.writer, self.layout
        for address in addresses:
            w.offset(address, address, layout.piece * ELEMENT_BYTES)
        if layout.overlap:
            with w.unless("bne", left, self.two):
                for address in addresses:
                    w.offset(address, address, -layout.overlap * ELEMENT_BYTES)
        w.op("sub", left, left, 1)

    def _load(self, name: str) -> None:
        """Load the next piece, if there is one, into the next slot."""
        w, layout = self.writer, self.layout
        done = f"{name}_done"
        w.op("beq", self.load_lines, w.zero, done)
        for number, address in enumerate(self.load_from):
            w.load(self.fill, address, self.piece, note=f"piece of map {number}")
            w.offset(self.fill, self.fill, layout.piece_bytes)
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
        w.store(self.out, self.made, self.piece)
        self._load("next")
        w.swap(self.made, self.stored, self.a)
        w.advance_ring(self.slot, layout.slot_bytes, self.ring, self.ring_end)
        self._advance(self.left, self.out)

    def _compute(self) -> None:
        """The result of the slot in use."""
        w, shape = self.writer, self.layout.shape
        made, slot, places = self.made, self.slot, self.places
        if shape.maps == 2:
            w.offset(self.a, slot, self.layout.piece_bytes)
            w.vector(_TWO_MAP_INSTRUCTIONS[shape.operation], made, slot, self.a)
            if shape.relu:
                w.vector("v.s.max", made, made, places[0], note="ReLU")
        elif shape.operation == "relu":
            w.vector("v.s.max", made, slot, places[0])
        elif shape.operation == "affine":
            w.vector("v.s.mul", made, slot, places[0], note="factor")
            w.vector("v.s.add", made, made, places[1], note="offset")
        elif shape.operation == "absolute":
            w.vector("v.s.mul", made, slot, places[0], note="negative")
            w.vector("v.v.max", made, slot, made)
        elif shape.operation == "clip":
            w.vector("v.s.max", made, slot, places[0])
            w.vector("v.s.min", made, made, places[1])
        elif shape.operation == "leaky":
            w.vector("v.s.mul", made, slot, places[0], note="slope")
            w.vector("v.v.max", made, slot, made)
        elif shape.operation in POLYNOMIALS:
            self._polynomial()
        elif shape.curve is not None:
            self._curve(shape.curve)
        else:
            w.vector(f"v.{shape.operation}", made, slot)

    def _shift(self, bits: int) -> None:
        """Shift the products of the next instructions right by so many bits."""
        self.writer.op("li", self.a, bits)
        self.writer.op("set.fx", self.a)

    def _with_next(self, mnemonic: str, result: str, first: str, note: str = "") -> None:
        """An instruction whose second operand is the next constant."""
        w = self.writer
        w.vector(mnemonic, result, first, self.number, note=note)
        w.op("add", self.number, self.number, ELEMENT_BYTES)

    def _curve(self, curve: Curve) -> None:
        """Likewise, of any function (:mod:`microkernels.nn.curves`)."""
        w, made, unit = self.writer, self.made, self.unit
        w.op("mov", self.number, self.places[0])
        for turn, piece in enumerate(curve.pieces):
            # The first part is the result's begin.
            found = self.part if turn else made
            self._with_next("v.s.max", unit, self.slot, note=f"part {turn}")
            self._with_next("v.s.min", unit, unit)
            self._with_next("v.s.add", unit, unit)
            self._shift(piece.shift)
            self._with_next("v.s.mul", unit, unit)
            self._shift(UNIT_FRACTION)
            self._with_next("v.s.mul", found, unit)
            for _ in piece.coefficients[1:-1]:
                self._with_next("v.s.add", found, found)
                w.vector("v.v.mul", found, found, unit)
            self._with_next("v.s.add", found, found)
            self._shift(piece.result_shift)
            self._with_next("v.s.mul", found, found)
            if turn:
                w.vector("v.v.add", made, made, found)
            else:
                self._with_next("v.s.add", made, made, note="start")

    def _polynomial(self) -> None:
        """Likewise, of gelu and erf (:mod:`microkernels.nn.curves`)."""
        w, shape = self.writer, self.layout.shape
        made, slot, unit = self.made, self.slot, self.unit
        fraction = shape.fraction or 0
        limit, moved, factor, minus, one, whole, zero, below, *coefficients = self.places
        self._shift(0)
        w.vector("v.s.mul", unit, slot, minus, note="magnitude")
        w.vector("v.v.max", unit, slot, unit)
        w.vector("v.s.min", unit, unit, limit)
        w.vector("v.s.add", unit, unit, moved)
        self._shift(fraction)
        w.vector("v.s.mul", unit, unit, factor)
        self._shift(UNIT_FRACTION)
        w.vector("v.s.mul", made, unit, coefficients[0], note="Horner's rule")
        w.vector("v.s.add", made, made, coefficients[1])
        for coefficient in coefficients[2:]:
            w.vector("v.v.mul", made, made, unit)
            w.vector("v.s.add", made, made, coefficient)
        self._shift(UNIT_FRACTION - fraction)
        if shape.operation == "gelu":
            w.vector("v.s.mul", made, made, one)
            w.vector("v.s.max", slot, slot, zero)
            w.vector("v.v.sub", made, slot, made)
            return
        w.vector("v.s.mul", made, made, minus)
        w.vector("v.s.add", made, made, whole, note="magnitude of the result")
        self._shift(0)
        w.vector("v.s.mul", unit, made, minus)
        w.vector("v.s.min", slot, slot, below)
        w.vector("v.s.mul", slot, slot, minus)
        w.vector("v.s.min", slot, slot, below)
        w.vector("v.s.mul", slot, slot, minus, note="limited to both sides")
        w.vector("v.v.add", slot, slot, slot)
        w.vector("v.v.max", slot, slot, unit)
        w.vector("v.v.min", made, slot, made)
