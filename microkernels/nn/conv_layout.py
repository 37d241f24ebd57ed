"""DRAM layout of a convolution, its partition over engines, and the loads of its input.

A vault's engines share a tile by rows of pixels and by groups of filters
(:meth:`microkernels.nn.conv_plan.ConvPlan.shares`): engines that work on the same rows take turns
on the groups, so that outputs written at the same time are adjacent. An engine's part of the
parameter block::

    0  groups of filters; 0: nothing to do
    1  rows of pixels, of all images
    2  pixels in all
    3  address of the input that its first window starts at
    4  address of its weights, one pass after the other
    5  address of the thresholds
    6  address of a dummy area that is written while the pipeline fills; partial sums that become
       bytes follow it
    7  for several images: rows of the first one
    8  for each group: address of its first output, and of its biases, where groups are uneven its
       filters and the elements of their weights of a part, in a convolution in groups one more than
       the address of its first window; as many words more, which are 0
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from microkernels.common.builder import WORD_BYTES, KernelBuilder
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, FeatureMap, round_up
from microkernels.common.fixed_point import (
    ELEMENT,
    ELEMENT_BYTES,
    LOWEST,
    Elements,
    check_elements,
    check_fraction,
)
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import block_bytes

from .conv_plan import ConvPlan
from .line import BlockLayout
from .window_shape import MOST_BYTE_FRACTION, outputs_per_element

_HEADER_WORDS = 8


@dataclass(frozen=True, kw_only=True)
class ConvLayout(BlockLayout):
    """Addresses of a convolution; see the module's text.

    Attributes:
        plan: partition of the layer.
        source: the image; its padding is at least that of the layer.
        fraction: bits by which sums of products are shifted right, 0..15.
        relu: negative outputs become 0.
        base: start of weights, biases and the parameter block; a multiple of 32.
        sharers: engines that share the layer, at least 1.
        images: that it computes, at least 1; ``source`` and ``target`` are the first one's maps.
        steps: bytes from an image's source and target to the next one's.

    Raises:
        KernelError: maps that do not fit the layer, or a value out of range.
    """

    plan: ConvPlan
    source: FeatureMap
    fraction: int
    relu: bool = True
    sharers: int = 1
    images: int = 1
    steps: tuple[int, int] = (0, 0)

    def on_images(self, further: Sequence[Self]) -> Self:
        """The layout of a layer on several images in one launch; as for
        :meth:`microkernels.nn.line.LineLayout.on_images`.

        Raises:
            KernelError: the maps are not equally far apart.
        """
        if not further:
            return self
        second = further[0]
        steps = second.source.base - self.source.base, second.target.base - self.target.base
        for number, other in enumerate(further, 1):
            apart = other.source.base - self.source.base, other.target.base - self.target.base
            if apart != (number * steps[0], number * steps[1]):
                raise KernelError("maps of images must be equally far apart")
        return replace(self, images=1 + len(further), steps=steps)

    def __post_init__(self) -> None:
        super().__post_init__()
        CHECK.at_least("sharers", self.sharers, 1)
        check_fraction(self.fraction)
        shape = self.plan.shape
        self.source.check_size("source", shape.width, shape.height, shape.channels)
        outputs = self.plan.out_channels
        self.target.check_size("target", shape.out_width, shape.out_height, outputs)
        if self.source.depth != self.plan.depth:
            raise KernelError(
                f"source has slices of {self.source.depth} channels, the plan of {self.plan.depth}"
            )
        strips = self.source.strip_rows is not None
        if strips != self.plan.strips:
            raise KernelError(
                f"the plan is for a map {'of' if self.plan.strips else 'without'} strips, source "
                f"is one {'of' if strips else 'without'} them"
            )
        if strips and (
            (self.source.strip_rows, self.source.strip_pitch, self.source.padding)
            != (shape.kernel_rows, shape.step_down, shape.padding)
        ):
            raise KernelError(
                f"source must have strips of {shape.kernel_rows} rows, {shape.step_down} apart, "
                f"and {shape.padding} pixels around"
            )
        if self.source.padding < shape.padding:
            raise KernelError(
                f"source has {self.source.padding} pixels around it, the layer {shape.padding}"
            )
        if any(
            first % self.target.depth + elements > self.target.depth
            for first, elements in map(self._elements, range(self.plan.groups))
        ):
            raise KernelError(
                f"{self.plan.filters} filters at once do not divide the target's slices of "
                f"{self.target.depth} channels"
            )

    def _elements(self, group: int) -> tuple[int, int]:
        """First element per pixel that a group of filters writes, and their number."""
        filters, each = self.plan.group_filters[group], outputs_per_element(self.plan.narrow)
        return filters.start // each, len(filters) // each

    @property
    def shares(self) -> Sequence[tuple[range, range]]:
        """Each engine's rows, those of further images following, and groups."""
        return self.plan.shares(self.sharers, self.images)

    @property
    def _parts(self) -> list[int]:
        """Words of each engine's part of the block."""
        return [_HEADER_WORDS + self.group_words * (len(groups) + 1) for _, groups in self.shares]

    @property
    def group_words(self) -> int:
        """Words that describe a group."""
        return 2 + (self.plan.shape.groups > 1) + 2 * (not self.plan.even)

    @property
    def thresholds(self) -> int:
        """Address of the thresholds."""
        return self._block_end

    @property
    def spare(self) -> int:
        """Address of the dummy area for the filling pipeline's stores, one piece per engine."""
        return self.thresholds + COLUMN_BYTES

    @property
    def sums(self) -> int:
        """Bytes from an engine's dummy area to its partial sums that become bytes."""
        return self._bias_step

    @property
    def _spare_step(self) -> int:
        pixels = 0
        if self.plan.narrows_sums:
            pixels = max(len(rows) for rows, _ in self.shares) * self.plan.shape.out_width
        return self.sums + round_up(pixels * self.plan.group_bytes, COLUMN_BYTES)

    @property
    def _bias_step(self) -> int:
        return round_up(self.plan.sums_together * self.plan.group_bytes, COLUMN_BYTES)

    @property
    def bias(self) -> int:
        """Address of the biases; each group's are a separate piece, for as many pixels as load
        partial sums at once."""
        return self.spare + self.sharers * self._spare_step

    @property
    def weights(self) -> int:
        """Address of the weights."""
        return self.bias + self.plan.groups * self._bias_step

    @property
    def end(self) -> int:
        # The last pass prefetches one pass beyond the end.
        passes = self.plan.groups * self.plan.slices + 1
        return round_up(self.weights + passes * self.plan.pass_bytes, COLUMN_BYTES)

    def _weights_of(self, groups: range) -> int:
        """Address of the first pass of the engines that take these groups."""
        before = sum(
            len(range(first, self.plan.groups, groups.step)) for first in range(groups.start)
        )
        return self.weights + before * self.plan.slices * self.plan.pass_bytes

    def store(self, memory: Writable, weights: Elements, bias: Elements) -> None:
        """Write everything except the image to ``memory``.

        Parameters:
            weights: filters x kernel (down) x kernel (across) x channels of a group, as elements.
            bias: one element per filter.

        Raises:
            KernelError: arrays of another shape, or values beyond 16 bits.
            isa.image.ImageError: the layout is outside the memory.
        """
        plan, shape = self.plan, self.plan.shape
        size = (shape.filters, shape.kernel_rows, shape.kernel, shape.group_channels)
        weights = check_elements("weights", weights, size)
        bias = check_elements("bias", bias, (shape.filters,))
        starts = [filters.start for filters in plan.group_filters]
        members = np.add.outer(starts, np.arange(plan.filters))
        padding = max(0, int(members.max()) + 1 - shape.filters)
        deeper = plan.slices * plan.depth - plan.read_channels
        weights = np.pad(self._in_slices(weights), ((0, padding), (0, 0), (0, 0), (0, deeper)))
        # group, filter, down, across, slice, channel -> group, slice, across, filter, down, channel
        split = weights[members].reshape(
            plan.groups, plan.filters, shape.kernel_rows, shape.kernel, plan.slices, plan.depth
        )
        order = (0, 4, 1, 3, 2, 5) if plan.joined else (0, 4, 3, 1, 2, 5)
        columns = split.transpose(order).reshape(-1, plan.column - plan.filled)
        passes = np.pad(columns, ((0, 0), (0, plan.filled))).reshape(plan.groups, -1)
        for _, groups in self.shares:
            block = np.ascontiguousarray(passes[groups.start :: groups.step])
            memory.write(self._weights_of(groups), block.astype(ELEMENT).tobytes())
        biases = np.zeros((plan.groups, self._bias_step // ELEMENT.itemsize), ELEMENT)
        of_pixels = np.tile(np.pad(bias, (0, padding))[members], plan.sums_together)
        biases[:, : of_pixels.shape[1]] = of_pixels
        memory.write(self.bias, biases.tobytes())
        thresholds = [LOWEST, 0 if self.relu else LOWEST]
        if plan.narrow is not None:
            # Products with these are shifted right by the fraction, or by 0.
            fraction = self.fraction if self.fraction <= MOST_BYTE_FRACTION else 0
            thresholds += [1 << fraction + plan.byte_shift, 1 << fraction + 8]
        memory.write(self.thresholds, np.array(thresholds, ELEMENT).tobytes())
        memory.write(self.parameters, self.block(self.parameters))

    def _in_slices(self, weights: Elements) -> Elements:
        """Weights for all channels that the filters at once read, with zeros for other groups."""
        shape, plan = self.plan.shape, self.plan
        inner, together = shape.group_channels, plan.read_channels // shape.group_channels
        if together == 1:
            return weights
        filters = shape.filters // shape.groups
        wide = np.zeros((*weights.shape[:-1], plan.read_channels), weights.dtype)
        for group in range(shape.groups):
            first = group % together * inner
            part = slice(group * filters, (group + 1) * filters)
            wide[part, ..., first : first + inner] = weights[part]
        return wide

    def block(self, address: int) -> bytes:
        words = [self._words(member, *share) for member, share in enumerate(self.shares)]
        return block_bytes(address, words)

    def _words(self, member: int, rows: range, groups: range) -> list[int]:
        shape = self.plan.shape
        size = _HEADER_WORDS + self.group_words * (len(groups) + 1)
        image, row = divmod(rows.start, shape.out_height)
        top = row * shape.step_down - shape.padding
        ahead, written = (image * step for step in self.steps)
        words = [
            len(groups) if rows else 0,
            len(rows),
            len(rows) * shape.out_width,
            self._window(groups.start, top) + ahead if rows and groups else 0,
            self._weights_of(groups),
            self.thresholds,
            self.spare + member * self._spare_step,
            min(len(rows), shape.out_height - row),
        ]
        for group in groups if rows else ():
            first, _ = self._elements(group)
            words.append(self.target.address(0, row, first) + written)
            words.append(self.bias + group * self._bias_step)
            if not self.plan.even:
                filters = len(self.plan.group_filters[group])
                words += [filters, filters * self.plan.length]
            if shape.groups > 1:
                words.append(self._window(group, top) + ahead + 1)
        return words + [0] * (size - len(words))

    def _window(self, group: int, top: int) -> int:
        """Address of the first window of a group of filters, whose first row is ``top``."""
        plan = self.plan
        channel = plan.group_filters[group].start // plan.read_filters * plan.read_channels
        return self.source.address(-plan.shape.padding, top, channel)


class ConvStream:
    """The loads of a convolution's input, as :mod:`microkernels.nn.conv_kernel` places them.

    Slot after slot of the input ring: all windows of the tile, slice by slice, again for every
    group of filters. After the last group, loads have no elements if the engine has begun it;
    otherwise, in rings that hold a whole pass, data are loaded that nobody uses.

    Its program has the registers ``rows``, the number of window rows, ``first``, the address of the
    first window, ``described``, that of the second group's description when the stream begins,
    ``groups``, the number of groups left, at least 1, and for several images ``first_rows``, the
    number of window rows in the first one.

    Attributes:
        count: register with the number of slots to load, where windows share slots.
        slot: register with the slot to load next.
        ring, ring_end: registers with the ring's bounds.
    """

    def __init__(self, layout: ConvLayout, writer: KernelBuilder) -> None:
        self.layout = layout
        self.plan = plan = layout.plan
        self.source = layout.source
        self.writer = w = writer
        self.count = w.register("freed", "slots to load")
        self.slot = w.register("load_slot", "slot to load next")
        self._from = w.register("load_from", "where its first column is in memory")
        self._row = w.register("load_row", "where the first column of its row of windows is")
        self._plane = w.register("load_plane", "where the first column of its slice is")
        self._row_left = w.register("load_row_left", "slots left in the row")
        self._rows_left = w.register("load_rows_left", "rows left in the slice")
        if layout.images > 1:
            self._image_rows = w.register("load_image_rows", "rows left in the image")
        if plan.slices > 1:
            self._slices_left = w.register("load_slices_left", "slices left")
        if plan.rows_apart > 1:
            self._apart_left = w.register("load_apart_left", "rows of windows left in the row")
        if plan.shape.groups > 1:
            self._next_window = w.register("load_next", "place of the next group's first window")
        self._pieces = (
            w.register("piece", "place of a load"),
            w.register("piece_from", "address of a load"),
        )
        self.ring = w.constant("ring", plan.places.ring, "input ring")
        self.ring_end = w.constant("ring_end", plan.places.used, "its end")
        if plan.repeated:
            end = plan.places.ring + plan.repeated * plan.slot_bytes
            self._again = w.constant("repeated_end", end, "end of repeated slots")
        self._elements = w.variable(
            "piece_size", plan.load_elements, "elements of a load of the input; 0 at the end"
        )

    def begin(self) -> None:
        """Fill the ring, starting with the first window."""
        w, plan = self.writer, self.plan
        w.note("Fill the input ring.")
        w.op("mov", self.slot, self.ring)
        w.op("mov", self._plane, "first")
        if plan.slices > 1:
            w.op("li", self._slices_left, plan.slices)
        if plan.shape.groups > 1:
            words = self.layout.group_words - 1
            w.offset(self._next_window, "described", words * WORD_BYTES)
        self._begin_plane()
        # Slots of whole windows are loaded one per turn, the last of the ring in the first.
        w.op("li", self.count, plan.slots - (not plan.sliding))
        self._load_slots("fill")

    def load(self) -> None:
        """Load the slots that the window before has left: as many as :attr:`count` says if windows
        share slots, which leaves it at 0, otherwise :attr:`slot`."""
        if self.plan.sliding:
            self._load_slots("load")
        else:
            self._load_slot()

    def _load_slots(self, name: str) -> None:
        """Load :attr:`count` slots (0 or more). ``name``: stem of the labels."""
        w, plan, done = self.writer, self.plan, f"{name}_done"
        w.op("beq", self.count, w.zero, done)
        w.label(name)
        self._load_slot()
        w.offset(self.slot, self.slot, plan.slot_bytes)
        w.seldom("beq", self.slot, self.ring_end, lambda: w.op("mov", self.slot, self.ring))
        w.op("sub", self.count, self.count, 1)
        w.op("bne", self.count, w.zero, name)
        w.label(done)

    def _load_slot(self) -> None:
        """Load :attr:`slot`."""
        w, plan = self.writer, self.plan
        w.load(self.slot, self._from, self._elements, note="input")
        if plan.slot_loads > 1:
            piece, memory = self._pieces
            w.op("mov", piece, self.slot)
            w.op("mov", memory, self._from)
            self._load_pieces(plan.slot_loads)
        if plan.repeated:
            w.seldom("blt", self.slot, self._again, self._repeat_slot)
        advance = plan.shape.dilation if plan.sliding else plan.shape.stride
        w.offset(self._from, self._from, self.source.x_step * advance)
        w.op("sub", self._row_left, self._row_left, 1)
        w.seldom("beq", self._row_left, w.zero, self._next_row)

    def _load_pieces(self, count: int) -> None:
        """Load what follows the first piece of a slot."""
        w, plan, (piece, memory) = self.writer, self.plan, self._pieces
        size = plan.load_elements * ELEMENT_BYTES
        down = plan.shape.gap_down * self.source.y_step
        loads = plan.column_loads
        for number in range(1, count):
            if number % loads:
                w.offset(piece, piece, size)
                w.offset(memory, memory, down)
            else:
                before = loads - 1
                w.offset(piece, piece, plan.column_pitch - before * size)
                across = plan.shape.dilation * self.source.x_step
                w.offset(memory, memory, across - before * down)
            w.load(piece, memory, self._elements)

    def _repeat_slot(self) -> None:
        w, plan, (piece, memory) = self.writer, self.plan, self._pieces
        w.offset(piece, self.slot, plan.slots * plan.slot_bytes)
        w.load(piece, self._from, self._elements, note="again, after the ring's end")
        if plan.slot_loads > 1:
            w.op("mov", memory, self._from)
            self._load_pieces(plan.slot_loads)

    def _next_row(self) -> None:
        w, plan = self.writer, self.plan
        apart = plan.shape.stride * self.source.x_step
        step = self.source.down_step(plan.shape.step_down)
        begun = w.new_label("begun") if plan.rows_apart > 1 else ""
        if begun:
            w.offset(self._row, self._row, apart, note="next row of windows")
            w.op("sub", self._apart_left, self._apart_left, 1)
            self._begin_part()
            w.op("bne", self._apart_left, w.zero, begun)
            step -= plan.rows_apart * apart
        w.offset(self._row, self._row, step, note="next row")
        if self.layout.images > 1:
            w.op("sub", self._image_rows, self._image_rows, 1)
            with w.unless("bne", self._image_rows, w.zero):
                rows, (apart_, _) = plan.shape.out_height, self.layout.steps
                gap = apart_ - rows * self.source.down_step(plan.shape.step_down)
                w.offset(self._row, self._row, gap, note="next image")
                w.op("li", self._image_rows, rows)
        self._begin_row()
        w.op("sub", self._rows_left, self._rows_left, 1)
        with w.unless("bne", self._rows_left, w.zero):
            if plan.slices == 1:
                self._next_group()
            else:
                w.offset(self._plane, self._plane, self.source.slice_step, note="next slice")
                w.op("sub", self._slices_left, self._slices_left, 1)
                with w.unless("bne", self._slices_left, w.zero):
                    self._next_group()
                    w.op("li", self._slices_left, plan.slices)
            self._begin_plane()
        if begun:
            w.label(begun)

    def _next_group(self) -> None:
        w, again = self.writer, "all slices again for the next group"
        w.op("sub", self._plane, "groups", 1)
        with w.unless("bne", self._plane, w.zero):
            w.op("mov", self._elements, w.zero)
        if self.plan.shape.groups == 1:
            w.op("mov", self._plane, "first", note=again)
            return
        begun = w.new_label("group_begun")
        w.op("ld.reg [64-bit]", self._plane, self._next_window, note="slices of the next group")
        with w.unless("beq", self._plane, w.zero):
            w.op("sub", self._plane, self._plane, 1)
            w.offset(self._next_window, self._next_window, self.layout.group_words * WORD_BYTES)
            w.op("jmp", begun)
        w.op("mov", self._plane, "first", note="after the last group")
        w.label(begun)

    def _begin_plane(self) -> None:
        w = self.writer
        w.op("mov", self._row, self._plane)
        w.op("mov", self._rows_left, "rows")
        if self.layout.images > 1:
            w.op("mov", self._image_rows, "first_rows")
        self._begin_row()

    def _begin_row(self) -> None:
        if self.plan.rows_apart > 1:
            self.writer.op("li", self._apart_left, self.plan.rows_apart)
        self._begin_part()

    def _begin_part(self) -> None:
        w, plan = self.writer, self.plan
        w.op("mov", self._from, self._row)
        w.op("li", self._row_left, plan.row_slots)
        if plan.short_rows:
            w.op("li", self._pieces[0], plan.short_rows)
            with w.unless("blt", self._pieces[0], self._apart_left):
                w.offset(self._row_left, self._row_left, -plan.advance, note="one window less")
