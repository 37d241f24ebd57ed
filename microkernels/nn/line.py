"""Layers divided into lines, on which a vault's engines take turns: layout, and common code.

A layout (:class:`LineLayout`) divides its layer into *lines* and defines where each one's data is.
An engine's part of the parameter block::

    0  lines; 0: nothing to do
    1  address of the constants, where the layer has any
    .. for each line: its words; those of a line more

A program (:func:`line_program`) is generated for one layout. Its kernel (:class:`LineKernel`) reads
its engine's part and computes line after line; :class:`StreamKernel` keeps a ring of loads in
flight across line ends.

Maps of layers with an attribute ``bits`` consist of elements or of pairs of bytes
(:mod:`microkernels.common.fixed_point`); their programs count *numbers* in instructions on vectors,
loads and stores. Everything else (channels, slices, weights as they are stored) counts elements.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Generic, Self, TypeVar

from isa.instruction import Width
from isa.program import Declared, Program, Span
from microkernels.common.builder import (
    DEFAULT_SCRATCHPAD,
    WORD_BYTES,
    KernelBuilder,
    launch_registers,
)
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, FeatureMap, round_up
from microkernels.common.fixed_point import packed
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import block_bytes, block_size, part_sizes
from microkernels.common.scratchpad_plan import ScratchpadPlan

from .curves import VectorOp


@dataclass(frozen=True, kw_only=True)
class BlockLayout(ABC):
    """Addresses of a layer's data besides its maps: a parameter block, then what a layer adds.

    Attributes:
        target: the output; it shares no memory with the input maps.
        base: first address of this data; a multiple of 32.

    Raises:
        KernelError: a field of another type or out of range.
    """

    target: FeatureMap
    base: int

    def __post_init__(self) -> None:
        CHECK.fields(self)
        if self.base < 0 or self.base % COLUMN_BYTES:
            raise KernelError(f"base must be a multiple of {COLUMN_BYTES}, not {self.base}")

    @property
    @abstractmethod
    def _parts(self) -> Sequence[int]:
        """Words of each engine's part of the parameter block."""

    @property
    @abstractmethod
    def end(self) -> int:
        """First byte after all data that this layout adds to the maps."""

    @abstractmethod
    def block(self, address: int) -> bytes:
        """The parameter block, for ``address``."""

    @property
    def parameters(self) -> int:
        """Address of the parameter block."""
        return self.base

    @property
    def declared(self) -> Declared:
        """The memory that is fixed by the layer: the parameter block."""
        block = Span(self.parameters, block_size(self._parts))
        return Declared(constants=(block,), slots=len(self._parts))

    @property
    def _block_end(self) -> int:
        """Address after the parameter block; a multiple of 32."""
        return round_up(self.base + block_size(self._parts), COLUMN_BYTES)


@dataclass(frozen=True, kw_only=True)
class LineLayout(BlockLayout):
    """Addresses of a layer divided into lines.

    Attributes:
        source: the input map, or the first of two.
        sharers: number of engines that share the layer, at least 1.
        further: layouts of further images, whose lines follow.
        scratchpad_bytes: size of the scratchpad.

    Raises:
        KernelError: maps that do not fit the layer, a scratchpad that is too small, or a value out
            of range.
    """

    source: FeatureMap
    sharers: int = 1
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD
    further: "tuple[LineLayout, ...]" = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        CHECK.at_least("sharers", self.sharers, 1)
        CHECK.kind("further", self.further, tuple)

    def on_images(self, further: Sequence[Self]) -> Self:
        """The layout of a layer on several images in one launch.

        Parameters:
            further: layouts of the images after this one's, whose maps are equally far apart.
        """
        return replace(self, further=tuple(further))

    def _check_maps(
        self, layer: str, *sizes: tuple[int, int, int], one_slice: bool = False
    ) -> None:
        """Check :attr:`maps`.

        Parameters:
            layer: subject of the message about maps with strips.
            sizes: width, height and channels of each map.
            one_slice: a map with all channels in one slice; all others have as many per slice as
                the source.
        """
        for (name, feature_map), size in zip(self.maps.items(), sizes, strict=True):
            feature_map.check_size(name, *size)
            if feature_map.strip_rows is not None:
                raise KernelError(f"{layer} maps without strips")
            if one_slice and feature_map.depth != feature_map.channels:
                raise KernelError(
                    f"{name} must have one slice of {feature_map.channels} channels, not slices "
                    f"of {feature_map.depth}"
                )
            if not one_slice and feature_map.depth != self.source.depth:
                raise KernelError(
                    f"source has slices of {self.source.depth} channels, {name} of "
                    f"{feature_map.depth}"
                )

    @property
    def maps(self) -> Mapping[str, FeatureMap]:
        """All maps by name, the target last."""
        return {"source": self.source, "target": self.target}

    # Memory.

    @property
    @abstractmethod
    def _lines(self) -> Sequence[tuple[int, int]]:
        """What distinguishes the lines, such as slice and row."""

    @abstractmethod
    def _words(self, line: tuple[int, int]) -> Sequence[int]:
        """The words that describe a line: addresses of its data."""

    @property
    def line_words(self) -> int:
        """Number of words that describe a line."""
        return len(self.maps)

    @property
    def has_constants(self) -> bool:
        """Whether there are constants after the parameter block."""
        return True

    @property
    def _parts(self) -> list[int]:
        fixed, lines = 1 + self.has_constants, len(self._lines) * (1 + len(self.further))
        return part_sizes(lines, self.sharers, fixed=fixed, each=self.line_words)

    @property
    def constants(self) -> int:
        """Address of the constants."""
        return self._block_end

    def _store_fixed(self, memory: Writable, constants: bytes = b"") -> None:
        """Write the constants and the parameter block to ``memory``."""
        memory.write(self.constants, constants)
        memory.write(self.parameters, self.block(self.parameters))

    def block(self, address: int) -> bytes:
        header = [self.constants] if self.has_constants else []
        # All have the same constants, after this block.
        images = [self, *(replace(each, further=self.further) for each in self.further)]
        every = [each._words(line) for each in images for line in each._lines]
        parts = []
        for member, size in enumerate(self._parts):
            lines = every[member :: self.sharers]
            part = [len(lines), *header, *(word for words in lines for word in words)]
            parts.append(part + [0] * (size - len(part)))
        return block_bytes(address, parts)

    # Program.

    @abstractmethod
    def generate(self, vault_bits: int | None) -> Program:
        """Generate the program; ``vault_bits`` as for :func:`line_program`, which caches
        programs."""


@CHECK.arguments
@lru_cache(maxsize=256)
def line_program(layout: LineLayout, *, vault_bits: int | None = None) -> Program:
    """The program of a layer with these sizes and addresses.

    Parameters:
        vault_bits: address bits of a vault if the start register ``parameters`` is an address
            within it (:meth:`microkernels.common.builder.KernelBuilder.start`).
    """
    return layout.generate(vault_bits)


LayoutT = TypeVar("LayoutT", bound=LineLayout)


class LineKernel(ABC, Generic[LayoutT]):
    """Code common to all kernels of lines.

    Parameters:
        layout: of the layer.
        vault_bits: as for :func:`line_program`.
        title: of the program's text. plan: of the scratchpad. bits: of a number.

    Attributes:
        writer: the builder to write to.
        packed: numbers per element.
        lines: register with the number of lines left.
        described: register with the address of the next line's description.
        constants: register with the address of the constants; "": allocated at the start.
        tmp: a temporary register.
    """

    described: str
    constants = ""
    tmp: str

    def __init__(
        self,
        layout: LayoutT,
        vault_bits: int | None,
        title: str,
        plan: ScratchpadPlan,
        *,
        bits: int = 16,
    ) -> None:
        self.layout = layout
        self.packed = packed(bits)
        self._vault_bits = vault_bits
        self.writer = KernelBuilder(
            title,
            f"Generated by {type(self).__module__}, which explains it.",
            "",
            *plan.listing,
            width=Width[f"W{bits}"],
            launch=launch_registers(vault_bits),
            scratchpad_bytes=layout.scratchpad_bytes,
            place_drains=True,
        )
        self.lines = self.writer.register("lines", "lines left")

    def build(self) -> KernelBuilder:
        """Write the complete program."""
        w, header = self.writer, [self.lines]
        if self.layout.has_constants:
            self.constants = self.constants or w.register("constants", "address of the constants")
            header.append(self.constants)
        w.start(header, self.described, vault_bits=self._vault_bits)
        with w.unless("beq", self.lines, w.zero):
            self._begin()
            w.note("A line.")
            with w.loop("line", self.lines):
                self._line()
            self._end()
        w.op("halt")
        return w

    @abstractmethod
    def _begin(self) -> None:
        """Write code before the first line."""

    @abstractmethod
    def _line(self) -> None:
        """Write the code of a line."""

    def _end(self) -> None:
        """Write code after the last line: none unless overridden."""
        return

    def _step(self, step: VectorOp, places: Mapping[str | int, str]) -> None:
        """Write an instruction of a function; ``places``: registers of vectors and constants."""
        if step.shift is not None:
            self._set("fx", step.shift)
        operands = [places[one] for one in step.places]
        self.writer.vector(step.mnemonic, *operands, note=step.note)

    def _set(self, setting: str, value: int) -> None:
        """Give a vector unit setting a value through :attr:`tmp`."""
        self.writer.op("li", self.tmp, value)
        self.writer.op(f"set.{setting}", self.tmp)


class StreamKernel(LineKernel[LayoutT]):
    """A kernel with a ring of loads in flight, which reads descriptions of lines independently.

    Attributes:
        ahead: register with the address of the description of the line to load next.
        load_lines, load_left: registers with the numbers of lines, and of a line's loads, that are
            left.
        next_from, load_from: registers with addresses of the line to load next and of the next
            load, for each input map.
        slot, fill: registers with the current slot and the one to load next.
        ring, ring_end: registers with the ring's bounds.
    """

    ahead: str
    load_lines: str
    load_left: str
    next_from: Sequence[str]
    load_from: Sequence[str]
    slot: str
    fill: str
    ring: str
    ring_end: str

    @abstractmethod
    def _load(self, name: str) -> None:
        """Load the next slot if anything is left; ``name``: stem of the labels."""

    @property
    @abstractmethod
    def _line_loads(self) -> int:
        """Loads per line."""

    def _begin_stream(self) -> None:
        """Read the address of the first line to load."""
        w = self.writer
        w.note("Fill the ring.")
        w.op("mov", self.load_lines, self.lines)
        self._read_ahead()

    def _fill_ring(self, slots: int, count: str) -> None:
        """After :meth:`_begin_stream`, load all slots, counted in register ``count``."""
        w = self.writer
        self._begin_load_line()
        w.op("mov", self.fill, self.ring)
        w.op("li", count, slots)
        w.label("fill")
        self._load("fill")
        w.op("sub", count, count, 1)
        w.op("bne", count, w.zero, "fill")
        w.op("mov", self.slot, self.ring)

    def _read_ahead(self) -> None:
        """Read the address of the line to load after the next one."""
        w = self.writer
        for register in self.next_from:
            w.read(register, self.ahead)
        rest = self.layout.line_words - len(self.next_from)
        w.op("add", self.ahead, self.ahead, rest * WORD_BYTES)

    def _begin_load_line(self) -> None:
        w = self.writer
        for register, source in zip(self.load_from, self.next_from, strict=True):
            w.op("mov", register, source)
        self._read_ahead()
        w.op("li", self.load_left, self._line_loads)
