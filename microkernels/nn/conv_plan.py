"""A division of a convolution that fits an engine's scratchpad: its places and estimated times.

An engine keeps ``filters`` filters at once, for one *slice* of the channels, and processes all
windows of its tile with them: one *pass*. The same filters over all slices are a *group*. The
scratchpad contains::

    weights      for each part of the window, the filters' weights of that part
    threshold    the lowest element and 0: lower limit of outputs without and with ReLU; for
                 outputs of bytes also what makes them from sums
    results      a ring of slots, one for a pixel: the sums of each part, and the partial sum of
                 the earlier slices, which may follow the sums of all
    input        a ring of slots: columns of the window, or whole windows; after its end its first
                 columns again, where a window of one part slides

Loaded data starts at multiples of :data:`isa.limits.RANGE_BYTES`: an access to the same unit of the
array range check as a load in flight would wait for the load.

The window of a slice is one *part* if it fits a vector register's length (256 elements), otherwise
one per column. Neighbouring windows share columns (``sliding``) if they overlap and there is more
than one part, or if ``reuse`` is requested and a column is a multiple of
:data:`isa.limits.RANGE_BYTES`, or filled up to one; otherwise a slot contains a complete window. A
part is contiguous: where a one-part window slides, the ring's first columns are loaded twice, to
their slots and after the ring's end, where such a window continues. Another column may be filled up
with the elements that follow it in memory, whose weights are 0.

With dilation, a column is loaded pixel by pixel, and every n-th window of a row shares columns:
these are a row of windows. In a convolution in groups, a pass has filters of one group, whose
slices it reads; a slice of several groups has zeros as weights for the others.

The predicted time of a window is the longest of three: of the vector unit, of the bus, which all
engines of the vault share, and of the latency of loads, which the input ring hides for as many
windows as it holds ahead. Times that are nearly equal partly add up. Start-up and passes are added.

The constants were fitted to 64 runs of the timing model: layers of 1 to 64 channels, kernels of 1
to 7 pixels, strides 1 and 2, with and without strips, on one and on four engines. The mean error is
4.3 %, the largest 23 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from math import gcd

from isa.limits import RANGE_BYTES
from isa.table import BY_KEY
from isa.timing import VECTOR_LATENCY, WORD_BYTES, row_beats
from microkernels.common.errors import CHECK
from microkernels.common.feature_map import COLUMN_BYTES, round_up
from microkernels.common.fixed_point import ELEMENT_BYTES
from microkernels.common.scratchpad_plan import ScratchpadPlan
from support.errors import counted

from .window_shape import MOST_NARROW, ConvShape, outputs_per_element

#: Pixels in the pipeline: those up to the age at which a pixel completes, and one until it is
#: stored and one being stored.
_COMPLETE = 2
_STORED_AFTER = 3
#: Engines per vault, and bus clocks per DRAM column; used only for estimates.
SHARERS = 4
_BUS_CLOCKS = 4
_BUS_EFFICIENCY = 0.8
#: Clocks that the vector unit loses when it accepts a short instruction; for estimates.
SHORT_COST = 1
#: Cycles that a load waits for the one before in its unit of the array range check.
_WAIT = 50
#: Clocks until a load's data arrives.
_LATENCY = 240
#: Clocks from a window, whose pixel's partial sum is loaded, to the next one, which adds it: 66 to
#: 85 in a vault, 118 in a chip.
_SUM_LATENCY = 80
#: Clocks of a program's start; of a pass besides its windows.
_START, _PASS = 600, 200
#: How strongly the longest time dominates: the times are added in this norm.
_EXPONENT = 12
#: Share of a line buffer that keeps a row of windows; columns read from memory per column that
#: they must be read. Both as measured on VGG-16.
_ROW_OF_LINES, _MISSES = 0.875, 1.25
_PRODUCT = BY_KEY["m.v.mul.add[16]"]


def slots_apart(shape: ConvShape) -> int:
    """Columns from a window to the next that shares some, counted without those between them."""
    return shape.stride // gcd(shape.stride, shape.dilation)


# Plans of many slices have as many rows and groups.
@lru_cache(maxsize=1 << 12)
def _shares(rows: int, groups: int, sharers: int) -> Sequence[tuple[range, range]]:
    """Rows and groups of filters of each engine, as of :meth:`ConvPlan.shares`."""
    by_group = min(
        (count for count in range(1, sharers + 1) if sharers % count == 0),
        key=lambda count: (-(-groups // count) * -(-rows // (sharers // count)), -count),
    )
    by_row = sharers // by_group
    ends = [part * rows // by_row for part in range(by_row + 1)]
    return tuple(
        (range(first, end), range(turn, groups, by_group))
        for first, end in pairwise(ends)
        for turn in range(by_group)
    )


@dataclass(frozen=True, kw_only=True)
class ConvPlan:
    """A division of a convolution; see the module's text.

    Attributes:
        shape: of the layer.
        depth: channels per slice of the input.
        out_depth: filters whose outputs are in a slice of the output.
        filters: at once, 1..256; some groups may have fewer.
        joined: the window has one part.
        sliding: slots of the input ring are columns, shared by windows.
        strips: windows are contiguous in memory (:mod:`microkernels.common.feature_map`).
        slots: in the input ring.
        filled: elements after each column, whose weights are 0.
        bits: of the numbers of image and weights, 16 or 8 (:mod:`microkernels.nn.window_shape`);
            ``shape`` and ``depth`` count elements.
        narrow: outputs are bytes, two per element: sums shifted right by this many bits; None:
            outputs are sums.
    """

    shape: ConvShape
    depth: int
    out_depth: int
    filters: int
    joined: bool
    sliding: bool
    strips: bool
    slots: int
    filled: int = 0
    bits: int = 16
    narrow: int | None = None

    @property
    def slices(self) -> int:
        """Number of slices of the input's channels."""
        return -(-self.read_channels // self.depth)

    @property
    def read_channels(self) -> int:
        """Channels that the filters at once read: of a group, or of several that fill a slice."""
        return max(self.shape.group_channels, min(self.depth, self.shape.channels))

    @property
    def read_filters(self) -> int:
        """Filters that read the same channels."""
        return self.shape.filters * self.read_channels // self.shape.channels

    @cached_property
    def group_filters(self) -> tuple[range, ...]:
        """Filters of each group. Where groups do not divide a slice of the output, some have fewer:
        the last ones of the first slice, the first ones of the second, and so on, so that engines
        that take turns have about as many."""
        ranges = []
        step = outputs_per_element(self.narrow)
        for number, first in enumerate(range(0, self.shape.filters, self.out_depth)):
            size = min(self.out_depth, round_up(self.shape.filters - first, step))
            count = -(-size // self.filters)
            if self.even:
                size = count * self.filters
            fewer, rest = divmod(size // step, count)
            sizes = [fewer + 1] * rest + [fewer] * (count - rest)
            ends = accumulate(sizes[:: -1 if number % 2 else 1], initial=0)
            ranges += [range(first + step * a, first + step * b) for a, b in pairwise(ends)]
        return tuple(ranges)

    @property
    def even(self) -> bool:
        """Whether all groups have as many filters, if need be with weights of 0."""
        return self.out_depth % self.filters == 0

    @property
    def groups(self) -> int:
        """Number of groups of filters."""
        # Planning asks for hundreds of thousands of plans.
        slices, rest = divmod(self.shape.filters, self.out_depth)
        return slices * -(-self.out_depth // self.filters) + -(-rest // self.filters)

    @property
    def mean_filters(self) -> float:
        """Filters of a group in the mean."""
        return self.filters if self.even else sum(map(len, self.group_filters)) / self.groups

    def passes(self, groups: range) -> float:
        """Passes of mean length for groups with these numbers."""
        if self.even:
            return self.slices * len(groups)
        return sum(len(self.group_filters[group]) for group in groups) / self.mean_filters

    @property
    def parts(self) -> int:
        """Number of parts of a window."""
        return 1 if self.joined else self.shape.kernel

    @property
    def column(self) -> int:
        """Elements per column of the window."""
        return self.shape.kernel_rows * self.depth + self.filled

    @property
    def length(self) -> int:
        """Elements per part of the window; the vector length of products."""
        return self.column * (self.shape.kernel if self.joined else 1)

    @property
    def slot_columns(self) -> int:
        """Columns per slot of the input ring."""
        return 1 if self.sliding else self.shape.kernel

    @property
    def window_slots(self) -> int:
        """Slots per window."""
        return self.shape.kernel if self.sliding else 1

    @property
    def advance(self) -> int:
        """Slots from a window to the next of its row."""
        return slots_apart(self.shape) if self.sliding else 1

    @property
    def pixel_step(self) -> int:
        """Pixels of the output from a window to the next of its row: with dilation, columns are
        shared by every n-th window, and every n-th one is a row of its own."""
        shape = self.shape
        return self.advance * shape.dilation // shape.stride if self.sliding else 1

    @property
    def rows_apart(self) -> int:
        """Rows of windows per row of the output."""
        return min(self.pixel_step, self.shape.out_width)

    @property
    def row_windows(self) -> int:
        """Windows per row; the last ones may have one less."""
        return -(-self.shape.out_width // self.rows_apart)

    @property
    def short_rows(self) -> int:
        """Rows of windows per row of the output that have one window less."""
        return self.rows_apart * self.row_windows - self.shape.out_width

    @property
    def repeated(self) -> int:
        """Slots that are loaded a second time after the ring's end."""
        return self.window_slots - 1 if self.joined else 0

    @property
    def least_slots(self) -> int:
        """Slots of the smallest input ring. Slots that a window leaves are loaded after the next
        one's first product, which reads one slot, or a complete window if it has one part; the next
        row begins with a window of new slots."""
        return 2 * self.window_slots if self.joined else self.window_slots + 1

    @property
    def row_slots(self) -> int:
        """Slots per row of windows."""
        return self.window_slots + (self.row_windows - 1) * self.advance

    @property
    def ahead(self) -> float:
        """Windows that are loaded before they are needed."""
        return (self.slots - self.window_slots) / self.advance

    @property
    def slot_loads(self) -> int:
        """Loads that fill a slot: one per column, or one for a contiguous window."""
        return 1 if self.joined and self.strips else self.slot_columns * self.column_loads

    @property
    def column_loads(self) -> int:
        """Loads per column: one per pixel if there are others between them."""
        return self.shape.kernel_rows if self.shape.gap_down > 1 else 1

    @property
    def load_elements(self) -> int:
        """Elements of a load that fills a slot or part of it."""
        return self.column * self.slot_columns // self.slot_loads

    @property
    def column_bytes(self) -> int:
        """Bytes of a column of the window."""
        return self.column * ELEMENT_BYTES

    @property
    def column_pitch(self) -> int:
        """Bytes from a column to the next within a slot; those of a joined window are adjacent."""
        return self.column_bytes if self.joined else round_up(self.column_bytes, RANGE_BYTES)

    @property
    def slot_bytes(self) -> int:
        """Bytes per slot of the input ring."""
        return round_up(self.slot_columns * self.column_pitch, RANGE_BYTES)

    @property
    def group_bytes(self) -> int:
        """Bytes of one element for each of the filters at once."""
        return self.filters * ELEMENT_BYTES

    @property
    def pixels(self) -> int:
        """Pixels in the pipeline: slots of the ring of results."""
        return round_up(self.packed_age + _STORED_AFTER, self.sums_together)

    @property
    def packed_age(self) -> int:
        """Age of the pixel whose bytes are packed, one after those whose sums are compared with the
        threshold and, unless they become bytes by eight bits, shifted. For outputs of sums the age
        at which they are compared."""
        return _COMPLETE if self.narrow is None else _COMPLETE + 1 + (self.byte_shift > 0)

    @property
    def narrows_sums(self) -> bool:
        """Whether outputs are bytes of several slices: partial sums are kept apart."""
        return self.narrow is not None and self.slices > 1

    @property
    def sums_together(self) -> int:
        """Pixels whose partial sums are loaded and stored at once: two where one's are half of a
        column of memory, results have one part, so those of pixels touch, and registers are left
        for two more pixels: one row of windows per row of the output."""
        half = self.joined and 2 * self.group_bytes == COLUMN_BYTES
        return 2 if half and self.narrows_sums and self.rows_apart == 1 else 1

    @property
    def byte_shift(self) -> int:
        """Bits from a byte's place in its sum to its element's high byte."""
        return 0 if self.narrow is None else MOST_NARROW - self.narrow

    @property
    def group_elements(self) -> int:
        """Elements per pixel that the filters at once write."""
        return self.filters // outputs_per_element(self.narrow)

    @property
    def out_channels(self) -> int:
        """Elements per pixel of the output."""
        return -(-self.shape.filters * self.group_elements // self.filters)

    @property
    def part_bytes(self) -> int:
        """Bytes of the weights of a part."""
        return self.filters * self.length * ELEMENT_BYTES

    @property
    def part_pitch(self) -> int:
        """Bytes from a part's weights to the next part's in the scratchpad."""
        return round_up(self.part_bytes, RANGE_BYTES)

    @property
    def pass_bytes(self) -> int:
        """Bytes of the weights of a pass in memory."""
        return self.parts * self.part_bytes

    @property
    def earlier(self) -> int:
        """Offset from a pixel's sums of the parts to the earlier slices' partial sum, which follows
        them, or those of all pixels."""
        sums = self.result_bytes - (self.bias_bytes if self.slices > 1 else 0)
        return sums * (self.pixels if self.sums_together > 1 else 1)

    @property
    def result_bytes(self) -> int:
        """Bytes per pixel of the result ring."""
        sums = round_up(self.parts * self.group_bytes, RANGE_BYTES)
        return sums + (self.bias_bytes if self.slices > 1 else 0)

    def first_result(self, age: int) -> int:
        """Scratchpad address of the sums of the pixel of this age where the youngest is in the
        first slot; those of the next pixel follow it if they are stored together."""
        if self.sums_together > 1:
            return self.places["results"] + -age % self.pixels * self.group_bytes
        return self.places["results"] + age * self.result_bytes

    @property
    def bias_bytes(self) -> int:
        """Bytes of a group's biases, or of a pixel's partial sums, in the scratchpad."""
        return round_up(self.group_bytes, RANGE_BYTES)

    @cached_property
    def places(self) -> ScratchpadPlan:
        """The scratchpad; see the module's text. Of two pixels whose sums move together the first
        one's are at an odd multiple of their size, which says so. With one slice there are biases
        of two groups; otherwise they are loaded as partial sums."""
        plan = ScratchpadPlan({"weights": self.parts * self.part_pitch})
        plan.take("thresholds", RANGE_BYTES + -plan.used % (self.sums_together * RANGE_BYTES))
        plan.take("results", self.pixels * self.result_bytes)
        plan.take("biases", 2 * self.bias_bytes if self.slices == 1 else 0)
        plan.set_ring(plan.used, self.slot_bytes, self.slots, self.slot_bytes)
        return plan

    @property
    def end(self) -> int:
        """First unused byte."""
        return self.places.used + self.repeated * self.slot_bytes

    @property
    def title(self) -> list[str]:
        """Lines at the top of the program: the layer, its division, the scratchpad."""
        shape = self.shape
        again = [f"  {self.places.used:>4} the first {self.repeated} slots again"]
        return [
            f"Convolution: {shape.width} x {shape.height} x {shape.channels}, {shape.filters} "
            f"filters of {shape.kernel} x {shape.kernel_rows}, stride {shape.stride}, padding "
            f"{shape.padding}; thesis section 6.2.",
            "Generated by microkernels.nn.conv_kernel, which explains the schedule and its safety.",
            f"{'' if self.even else 'At most '}{self.filters} filters at once on slices of "
            f"{self.depth} channels; a window has "
            f"{counted(self.parts, 'part')} of {self.length} elements.",
            "",
            *self.places.listing,
            *again[: self.repeated],
        ]

    @property
    def product_beats(self) -> float:
        """Vector unit cycles per part, in the mean."""
        return self.mean_filters * row_beats(_PRODUCT, self.length)

    @property
    def spaced(self) -> bool:
        """Whether a product is long enough to avoid hazards between the instructions before and
        after it."""
        fewest = self.filters if self.even else min(map(len, self.group_filters))
        return fewest * row_beats(_PRODUCT, self.length) >= VECTOR_LATENCY

    @property
    def vector_cycles(self) -> float:
        """Estimated vector unit cycles per window."""
        short = -(-self.group_bytes // WORD_BYTES) + SHORT_COST
        # Bytes are picked from their sums at one per cycle.
        picked = 0.0
        if self.narrow is not None:
            picked = (short + self.mean_filters + SHORT_COST) / self.slices
        return self.parts * self.product_beats + (self.parts + 1) * short + picked

    @property
    def waits(self) -> float:
        """Estimated cycles per window in which loads wait for a neighbour in the same unit of the
        array range check."""
        sizes = (self.column_pitch, self.load_elements * ELEMENT_BYTES)
        apart = all(size % RANGE_BYTES == 0 for size in sizes[: self.column_loads])
        return 0 if apart else _WAIT * (self.slot_loads - 1)

    def bus_cycles(self, sharers: int) -> float:
        """Estimated cycles of a vault's bus for one window of each of ``sharers`` engines."""
        size = self.load_elements * ELEMENT_BYTES
        # A piece that does not fill its columns may begin anywhere in one.
        columns_of_load = -(-size // COLUMN_BYTES) + (size % COLUMN_BYTES > 0)
        twice = 1 + self.repeated / self.slots
        columns = self.advance * self.slot_loads * twice * columns_of_load
        if self.rows_apart > 1:
            # Each row of windows begins with new slots.
            columns *= self.row_slots / (self.row_windows * self.advance)
        stored = self.group_elements * ELEMENT_BYTES
        if self.slices > 1:
            together = self.sums_together
            columns += -(-together * self.group_bytes // COLUMN_BYTES) / together
        columns += -(-stored // COLUMN_BYTES)
        return sharers * _BUS_CLOCKS * columns / _BUS_EFFICIENCY

    def window_cycles(self, sharers: int) -> float:
        """Estimated cycles of a window on each of ``sharers`` engines."""
        latency = _LATENCY / max(self.ahead, 1 / 2)
        sums = _SUM_LATENCY if self.slices > 1 else 0
        times = (self.vector_cycles, self.bus_cycles(sharers), latency, sums, self.waits)
        return float(sum(time**_EXPONENT for time in times) ** (1 / _EXPONENT))

    def shares(self, sharers: int, images: int = 1) -> Sequence[tuple[range, range]]:
        """Rows of output pixels, and every n-th group of filters, for each of ``sharers`` (at least
        1) engines; the largest share is as small as possible. The rows of several images follow
        each other.

        Raises:
            KernelError: ``sharers`` is less than 1.
        """
        CHECK.at_least("sharers", sharers, 1)
        return _shares(self.shape.out_height * images, self.groups, sharers)

    def memory_bytes(self, sharers: int, images: int, lines: int) -> float:
        """Estimated bytes that a vault reads and writes in columns of memory for the complete layer
        on ``images``, with a line buffer of ``lines`` lines: of its engines those with the same
        rows read each column once, and once for all rows if lines hold a row of windows."""
        turns: dict[range, int] = {}
        passes = pixels = 0
        for rows, groups in self.shares(sharers, images):
            turns[rows] = max(turns.get(rows, 0), len(groups))
            passes += len(groups) * bool(rows)
            pixels += len(groups) * len(rows) * self.shape.out_width
        sums = round_up(self.sums_together * self.group_bytes, COLUMN_BYTES) / self.sums_together
        written = round_up(self.group_elements * ELEMENT_BYTES, COLUMN_BYTES)
        total = pixels * (2 * (self.slices - 1) * sums + written)
        total += passes * self.slices * self.pass_bytes
        across = self.rows_apart * self.row_slots * self.slot_columns
        down, step = self.shape.kernel_rows, self.shape.step_down
        kept = across * -(-self.column_bytes // COLUMN_BYTES) <= _ROW_OF_LINES * lines
        for rows, turn in turns.items():
            read = len(rows) * (min(step, down) if kept else down)
            if kept:
                read += max(0, down - step) * -(-len(rows) // self.shape.out_height)
            total += _MISSES * turn * self.slices * across * self.column_bytes * read / down
        return total

    def least_cycles(self, sharers: int, images: int = 1) -> float:
        """A lower bound of :meth:`cycles`: equal shares that wait for nothing."""
        rows = images * self.shape.out_height
        windows = self.shape.out_width * rows * self.groups * self.slices
        # Estimates are rounded.
        return self.vector_cycles * windows / sharers * (1 - 1e-9)

    def cycles(self, sharers: int, images: int = 1) -> float:
        """Estimated cycles of the busiest of ``sharers`` (at least 1) engines of a vault for the
        complete layer on ``images``; used for choosing."""
        window = self.window_cycles(SHARERS)
        shares = self.shares(sharers, images)
        rows = max(len(rows) * self.passes(groups) for rows, groups in shares)
        return window * rows * self.shape.out_width

    def predicted_cycles(self, sharers: int, images: int = 1) -> float:
        """Predicted cycles of the busiest of ``sharers`` (at least 1) engines of a vault for the
        complete layer on ``images``, with start and passes.

        Raises:
            KernelError: ``sharers`` is less than 1.
        """
        window = self.window_cycles(sharers)
        return max(
            _START + self.passes(groups) * (_PASS + len(rows) * self.shape.out_width * window)
            for rows, groups in self.shares(sharers, images)
        )
