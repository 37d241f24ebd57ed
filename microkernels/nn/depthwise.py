"""Depthwise convolutions: layout and kernel.

Outputs are computed in *strips* of a column's pixels in :attr:`Strip.lanes` channels: all of a
slice, or so many of them that more pixels fit the scratchpad and fewer rows are read twice. A strip
is ``vectors`` vectors of ``together`` pixels. Weights are stored as such vectors, repeated for each
pixel, one per pixel of the window, followed by the biases. The scratchpad contains the threshold,
these vectors, two strips of outputs, two vectors of products, and a ring of *slots*: the pixels of
an input column that a strip needs. With a vertical stride, pixels whose numbers have the same
remainder are stored together, so that a vector finds those of one row of the windows one after the
other.

The work is divided into *lines*: a row of strips in some channels, or a part of one where there are
fewer than engines. The last strips and parts overlap the previous ones. An engine takes lines that
follow each other, most of which have the same weights. A line's words are the addresses of its
first input, of its first output and of its weights. The constant is the threshold.

For each pixel of the window the program computes products of whole vectors, with channels in the
lanes, and sums. A sum follows the next product, so it need not wait for its own. After each vector
instruction there is room for others: those that load columns for later strips, across line ends,
and store the previous strip. Loads after the last column, and stores before the first strip, have
no elements. Freed slots are loaded, and outputs stored, only after some instructions of the next
strip, so that the vector unit has read the former and written the latter.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import cycle, zip_longest

import numpy as np

from isa.program import Program
from isa.timing import VECTOR_LATENCY
from microkernels.common.builder import WORD_BYTES
from microkernels.common.feature_map import COLUMN_BYTES, part_starts, round_up
from microkernels.common.fixed_point import (
    ELEMENT,
    ELEMENT_BYTES,
    NUMBERS,
    Elements,
)
from microkernels.common.memory import Writable
from support.errors import counted

from .depthwise_plan import DepthwiseShape, Strip, best_strip
from .line import LineLayout, StreamKernel

#: Vector instructions of a strip before the first instruction beside it.
_BESIDE = 3


@dataclass(frozen=True, kw_only=True)
class DepthwiseLayout(LineLayout):
    """Addresses of a depthwise convolution; see the module's text.

    Attributes:
        shape: of the layer.

    Raises:
        KernelError: maps that do not fit the layer, a window that does not fit the scratchpad, or a
            value out of range.
    """

    line_words = 3

    shape: DepthwiseShape

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = self.shape
        self._check_maps(
            "depthwise convolutions need",
            (shape.width, shape.height, shape.channels),
            (shape.out_width, shape.out_height, shape.channels),
        )
        _ = self.strip

    @cached_property
    def strip(self) -> Strip:
        """What is computed at once."""
        return best_strip(
            self.shape,
            self.source.depth,
            sharers=self.sharers,
            scratchpad_bytes=self.scratchpad_bytes,
        )

    @cached_property
    def width(self) -> int:
        """Outputs of a line."""
        return self.strip.width(self.sharers)

    # Memory.

    @property
    def _lines(self) -> list[tuple[int, int]]:
        """First channel and output, column by column, of each line, so that engines which take
        turns get lines that follow each other."""
        height = self.shape.out_height
        rows = part_starts(height, self.strip.pixels)
        columns = part_starts(self.shape.out_width, self.width)
        channels = range(0, self.source.slices * self.source.depth, self.strip.lanes)
        lines = [
            (channel, column * height + row)
            for channel in channels
            for row in rows
            for column in columns
        ]
        shares = np.array_split(np.arange(len(lines)), self.sharers)
        turns = zip_longest(*map(np.ndarray.tolist, shares))
        return [lines[number] for turn in turns for number in turn if number is not None]

    def _words(self, line: tuple[int, int]) -> list[int]:
        channel, place = line
        shape = self.shape
        column, row = divmod(place, shape.out_height)
        return [
            self.source.address(column * shape.stride, row * shape.step_down, channel),
            self.target.address(column, row, channel),
            self.weights + channel // self.strip.lanes * self._weight_step,
        ]

    @property
    def weights(self) -> int:
        """Address of the weights and biases, of so many channels after the other."""
        return self.constants + COLUMN_BYTES

    @property
    def weight_elements(self) -> int:
        """Elements of a line's weights and biases."""
        return (self.shape.taps + 1) * self.strip.unit

    @property
    def _weight_step(self) -> int:
        return round_up(self.weight_elements * ELEMENT_BYTES, COLUMN_BYTES)

    @property
    def end(self) -> int:
        parts = self.source.slices * self.source.depth // self.strip.lanes
        return self.weights + parts * self._weight_step

    def store(self, memory: Writable, weights: Elements, bias: Elements) -> None:
        """Write everything except the maps to ``memory``.

        Parameters:
            weights: channels x rows x columns of a window, as elements.
            bias: one element per channel.

        Raises:
            isa.image.ImageError: the layout is outside the memory.
        """
        numbers = NUMBERS[self.shape.bits]
        threshold = 0 if self.shape.relu else np.iinfo(numbers).min
        self._store_fixed(memory, np.array([threshold], numbers).tobytes())
        taps = weights.transpose(2, 1, 0).reshape(self.shape.taps, -1)
        rows = np.concatenate([taps, bias[np.newaxis]])
        lanes, channels = self.strip.lanes, self.source.slices * self.source.depth
        filled = np.pad(rows, ((0, 0), (0, channels - rows.shape[1])))
        for number in range(channels // lanes):
            part = filled[:, number * lanes : (number + 1) * lanes]
            tiled = np.tile(part, (1, self.strip.together)).astype(ELEMENT)
            memory.write(self.weights + number * self._weight_step, tiled.tobytes())

    def generate(self, vault_bits: int | None) -> Program:
        shape = self.shape
        name = f"depthwise_{shape.across}x{shape.down}x{shape.channels}.s"
        return _DepthwiseKernel(self, vault_bits).build().program(name)


def _apart(chains: list[list[Callable[[], None]]], distance: int) -> Iterator[None]:
    """Write the instructions of chains, those of one chain in order and, if there are others to
    write, ``distance`` instructions apart."""
    earliest = [0] * len(chains)
    for now in range(sum(map(len, chains))):
        numbers = [number for number, chain in enumerate(chains) if chain]
        number = min(numbers, key=lambda n: (max(earliest[n], now), -len(chains[n])))
        chains[number].pop(0)()
        earliest[number] = now + distance
        yield


class _DepthwiseKernel(StreamKernel[DepthwiseLayout]):
    def __init__(self, layout: DepthwiseLayout, vault_bits: int | None) -> None:
        shape, self.strip = layout.shape, layout.strip
        self.plan = self.strip.scratchpad
        super().__init__(
            layout,
            vault_bits,
            f"Depthwise convolution: {shape.width} x {shape.height} x {shape.channels}, window "
            f"{shape.across} x {shape.down}, stride {shape.stride} x {shape.step_down}, strips of "
            f"{counted(self.strip.vectors, 'vector')} of {counted(self.strip.together, 'pixel')} "
            f"of {counted(self.strip.lanes, 'channel')}.",
            self.plan,
            bits=shape.bits,
        )
        reg = self.writer.register
        self.described = reg("described", "address of the next line's description")
        self.ahead = reg("ahead", "address of the description of the line to load next")
        self.next_from = [reg("next_from", "that line: address of its first column")]
        self.load_lines = reg("load_lines", "lines left to load")
        self.load_left = reg("load_left", "columns left to load in the line, or windows")
        self.load_from = [reg("load_from", "address of the next column")]
        self.fill = reg("load_slot", "slot to load next")
        self.next_out = reg("next_out", "next line: address of its first output")
        self.next_weights = reg("next_weights", "next line: address of its weights")
        self.used = reg("used", "address of the weights in use")
        self.out = reg("out", "address of the output")
        self.stored_out = reg("stored_out", "address of the output before")
        self.left = reg("left", "strips left in the line")
        self.slot = reg("window", "first slot of the window, from the end of the ring")
        self.column = reg("column", "slot of a column, from the end of the ring")
        self.weight = reg("weight", "weights of a pixel of the window")
        self.tmp = reg("tmp", "temporary")
        self.tmp1 = reg("tmp1", "temporary")
        self._set_places()

    def _set_places(self) -> None:
        """Allocate registers with places in the scratchpad and sizes."""
        w, strip, plan = self.writer, self.strip, self.plan
        self.weights = w.constant("weights", plan["weights"], "weights")
        self.threshold = w.constant("threshold", plan["threshold"], "threshold")
        self.result = w.variable("result", plan["outputs0"], "strip that is computed")
        self.stored = w.variable("stored", plan["outputs1"], "strip that is stored")
        numbers = range(1, strip.vectors)
        self.results = [self.result, *(w.register(f"result_{n}", "its next") for n in numbers)]
        self.products = [
            w.constant(f"product_{n}", plan[f"products{n}"], "products") for n in (0, 1)
        ]
        self.ring = w.constant("ring", plan.ring, "ring")
        self.ring_end = w.constant("ring_end", plan.used, "its end")
        self.ring_size = w.constant("ring_size", plan.used - plan.ring, "its size")
        pixel = strip.lanes * self.packed
        weights = self.layout.weight_elements * self.packed
        self.all_weights = w.constant("all_weights", weights, "numbers of weights and biases")
        load = pixel * (strip.seen if strip.loads == 1 else 1)
        self.load_size = w.variable("load_size", load, "numbers of a load; 0 at the end")
        store = pixel * strip.pixels // strip.stores
        self.store_full = w.constant("store_full", store, "numbers of a store")
        self.store_size = w.variable("store_size", 0, "the same; 0 at the start")

    def _begin(self) -> None:
        w = self.writer
        self._set("fx", self.layout.shape.fraction)
        self._set("vl", self.strip.unit * self.packed)
        w.op("mov", self.ahead, self.described)
        self._describe()
        self._begin_stream()
        self._load_weights()
        self._fill_ring(self.layout.shape.across // self.strip.at_once, self.left)
        w.op("sub", self.slot, w.zero, self.ring_size)
        w.op("li", self.tmp, 1)
        w.load(self.threshold, self.constants, self.tmp, note="threshold")
        w.op("mov", self.stored_out, self.next_out)

    def _describe(self) -> None:
        """Read the addresses of the next line's outputs and weights."""
        w = self.writer
        w.op("add", self.described, self.described, WORD_BYTES)
        w.read(self.next_out, self.described)
        w.read(self.next_weights, self.described)

    def _load_weights(self) -> None:
        """Load the next line's weights."""
        w = self.writer
        w.load(self.weights, self.next_weights, self.all_weights, note="weights and biases")
        w.op("mov", self.used, self.next_weights)

    @property
    def _line_loads(self) -> int:
        shape, strip = self.layout.shape, self.strip
        if shape.stride > shape.across:
            return self.layout.width
        return self.layout.width * strip.freed + shape.across - strip.freed

    def _load(self, name: str) -> None:
        for part in self._column(name):
            part()

    def _column(self, name: str) -> list[Callable[[], None]]:
        """What loads the next column, or the next window, in small parts."""
        source = self.layout.source
        loads = [
            partial(
                self._load_part,
                column * self.plan.slot + self.strip.place(pixel),
                column * source.x_step + pixel * source.y_step,
            )
            for column in range(self.strip.at_once)
            for pixel in range(self.strip.loads)
        ]
        return [*loads, partial(self._next_column, name)]

    def _load_part(self, slot: int, memory: int) -> None:
        w = self.writer
        w.offset(self.tmp, self.fill, slot)
        w.offset(self.tmp1, self.load_from[0], memory)
        w.load(self.tmp, self.tmp1, self.load_size)

    def _next_column(self, name: str) -> None:
        w, shape = self.writer, self.layout.shape
        (load_from,), done = self.load_from, f"{name}_done"
        w.advance_ring(self.fill, self.strip.at_once * self.plan.slot, self.ring, self.ring_end)
        columns = shape.stride if shape.stride > shape.across else 1
        w.offset(load_from, load_from, columns * self.layout.source.x_step)
        w.op("sub", self.load_left, self.load_left, 1)
        w.op("bne", self.load_left, w.zero, done)
        w.op("sub", self.load_lines, self.load_lines, 1)
        with w.unless("bne", self.load_lines, w.zero):
            w.note("The end, again after each column.")
            w.op("mov", self.load_size, w.zero)
            w.op("mov", load_from, w.zero)
            w.op("li", self.load_lines, 1)
            w.op("li", self.load_left, 1)
        w.op("beq", self.load_size, w.zero, done)
        self._begin_load_line()
        w.label(done)

    def _line(self) -> None:
        w, shape = self.writer, self.layout.shape
        w.op("mov", self.out, self.next_out)
        with w.unless("beq", self.next_weights, self.used):
            w.op("v.drain")
            self._load_weights()
        self._describe()
        w.op("li", self.left, self.layout.width)
        with w.loop("strip", self.left):
            self._strip()
        rest = shape.across - self.strip.freed
        if rest:
            w.note("The other columns of the next line's first window.")
            self._wrap(self.slot, self.slot, rest * self.plan.slot)
            w.op("li", self.left, rest)
            with w.loop("rest", self.left):
                self._load("rest")

    def _wrap(self, result: str, slot: str, distance: int) -> None:
        """``slot + distance`` from the end of the ring; at the end it wraps to the start."""
        w = self.writer
        w.offset(result, slot, distance)
        w.op("sra", self.tmp, result, 63)
        w.op("and", self.tmp, self.tmp, self.ring_size)
        w.op("sub", result, result, self.ring_size)
        w.op("add", result, result, self.tmp)

    def _strip(self) -> None:
        """Compute a strip; beside it, load the columns that take the place of those that the strip
        before no longer needs, and store the strip before."""
        columns = range(self.strip.freed // self.strip.at_once)
        chores = [chore for n in columns for chore in self._column(f"next{n}")]
        chores += [*self._stores, self._next_output]
        rate = -(-len(chores) // max(1, self.strip.operations - _BESIDE))
        for number, _ in enumerate(self._vectors()):
            if number >= _BESIDE:
                for chore in chores[:rate]:
                    chore()
                del chores[:rate]
        for chore in chores:
            chore()
        self.writer.swap(self.result, self.stored, self.tmp)

    def _vectors(self) -> Iterator[None]:
        """Write the vector instructions of a strip one by one."""
        w, strip, shape = self.writer, self.strip, self.layout.shape
        size, slot = strip.unit_bytes, self.plan.slot
        numbers = cycle(self.products)
        column, weight = self.slot, self.weights
        # Written after the next product.
        pending: list[Callable[[], None]] = []
        for tap in range(shape.taps):
            across, down = divmod(tap, len(shape.rows))
            row = shape.rows[down]
            if tap:
                weight = self.weight
                w.offset(weight, self.weights, tap * size)
            if across and not down:
                column = self.column
                self._wrap(column, self.slot, shape.columns[across] * slot)
            for number, result in enumerate(self.results):
                pixel = row + number * strip.together * shape.step_down
                if not tap and number:
                    w.offset(result, self.result, number * size)
                product = next(numbers) if tap else result
                multiply = partial(self._multiply, product, column, pixel, weight)
                if not tap and shape.taps > 1 and result == self.results[-1]:
                    pending = [multiply]
                    continue
                multiply()
                yield
                for instruction in pending:
                    instruction()
                    yield
                pending = [partial(w.vector, "v.v.add", result, result, product)] if tap else []
        self._wrap(self.slot, self.slot, strip.freed * slot)
        w.offset(self.weight, self.weights, shape.taps * size)
        ends: list[list[Callable[[], None]]] = [
            [partial(w.vector, "v.v.add", result, result, self.weight, note="bias")]
            for result in self.results
        ]
        if shape.relu:
            for end, result in zip(ends, self.results, strict=True):
                end.append(partial(w.vector, "v.s.max", result, result, self.threshold))
        ends[-1][:0] = pending
        yield from _apart(ends, -(-VECTOR_LATENCY // strip.beats))

    def _multiply(self, product: str, column: str, pixel: int, weight: str) -> None:
        """Multiply a vector that begins with a pixel of a column."""
        self.writer.offset(self.tmp, column, self.plan.used + self.strip.place(pixel))
        self.writer.vector("v.v.mul", product, self.tmp, weight)

    @property
    def _stores(self) -> list[Callable[[], None]]:
        """What stores the strip before, in small parts."""
        return [partial(self._store, pixel) for pixel in range(self.strip.stores)]

    def _store(self, pixel: int) -> None:
        w = self.writer
        w.offset(self.tmp, self.stored, pixel * self.strip.pixel_bytes)
        w.offset(self.tmp1, self.stored_out, pixel * self.layout.target.y_step)
        w.store(self.tmp1, self.tmp, self.store_size)

    def _next_output(self) -> None:
        w = self.writer
        w.op("mov", self.stored_out, self.out)
        w.offset(self.out, self.out, self.layout.target.x_step)
        w.op("mov", self.store_size, self.store_full)

    def _end(self) -> None:
        self.writer.op("v.drain")
        for store in self._stores:
            store()
