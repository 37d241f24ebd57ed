"""Generates the convolution kernel: any sizes, stride and padding, bias and ReLU.

Each program is for one layer (:class:`microkernels.nn.conv_layout.ConvLayout`), with an engine's
parameter block. Its arithmetic is that of :func:`microkernels.nn.window_shape.convolve`.

For each group of filters and each slice of the channels (a *pass*) the program processes the tile's
windows row by row, without stopping between rows, passes and groups of equal size. In a pixel's
turn the vector unit executes, for this pixel (age 0) and for earlier ones still in the pipeline:

- age 0: the product of each part of the window with all filters at once (``m.v.mul.add``); after
  each product one of the following operations on an earlier pixel:
- age 1: the addition of the parts' sums one by one, then of the earlier slices' sum;
- age 2: the maximum with the threshold: 0 in the last slice with ReLU, otherwise the lowest
  element;
- for outputs of bytes, age 3: the byte is shifted to its element's high byte, with saturation,
  unless it is there; age 4, or 3: the high bytes are packed; with FX 0 if FX is above 6.

During the first product, the slots that the previous window no longer needs are reloaded, the
oldest pixel's sums are stored, and the youngest pixel's partial sum of the earlier slices is loaded
(before the slots if these take several loads per column). All of a pixel's sums stay in its slot of
a ring (thesis Figure 6.5 adds a pixel's parts after a ``v.drain`` instead). Partial sums of two
pixels that fill a column of memory are loaded in the first one's turn, and stored in the turn that
stores it.

The following rules, and those in :mod:`microkernels.bp.kernel`, keep the program correct for any
timing of the memory:

- *Vector after vector*: a product always separates an addition from what produced its operands; a
  ``v.drain`` follows it if it is shorter than the vector unit's latency.
- *Load after vector*: slots that a pixel no longer needs are loaded after the next pixel's first
  product, and the next pass's weights after the second instruction that follows their last product;
  for the last part a pad is the second.
- *Store after vector*: a complete turn separates a pixel's last sum from its store.
- *Load after store* in memory: partial sums are stored before they are loaded. A pass with fewer
  pixels than the pipeline holds, or whose sums may become bytes, ends with an empty pipeline; so do
  groups of unequal size, as all pixels in it have as many filters.
- With one slice the biases stay in the scratchpad, those of a group in one of two places in turn: a
  ``v.drain`` separates their load from the last pixel that read that place.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache

from isa.program import Program
from microkernels.common.builder import WORD_BYTES, KernelBuilder, launch_registers
from microkernels.common.errors import CHECK
from microkernels.common.fixed_point import ELEMENT_BYTES

from .conv_layout import ConvLayout, ConvStream
from .window_shape import MOST_BYTE_FRACTION


@CHECK.arguments
@lru_cache(maxsize=64)
def conv_program(layout: ConvLayout, *, vault_bits: int | None = None) -> Program:
    """The program of a convolution; ``vault_bits`` as for
    :func:`microkernels.nn.line.line_program`."""
    shape = layout.plan.shape
    name = f"conv_{shape.kernel}x{shape.kernel_rows}x{shape.channels}x{shape.filters}.s"
    return _ConvKernel(layout, vault_bits).build().program(name)


class _ConvKernel:
    def __init__(self, layout: ConvLayout, vault_bits: int | None) -> None:
        self.plan = plan = layout.plan
        self.layout = layout
        self.vault_bits = vault_bits
        launch = launch_registers(vault_bits)
        self.writer = w = KernelBuilder(*plan.title, launch=launch)
        self.fraction = layout.fraction
        # The start reads them before it reads words into other registers.
        w.release(*launch)
        reg = w.register
        self.groups = reg("groups", "groups of filters left")
        self.rows = reg("rows", "rows of windows")
        self.pass_pixels = reg("pass_pixels", "pixels in a pass")
        self.first = reg("first", "address of the first window")
        self.weights = reg("weights", "address of the next pass's weights")
        self.limits = reg("limits", "address of the thresholds")
        self.spare = reg("spare", "address for stores that mean nothing")
        if layout.images > 1:
            self.first_rows = reg("first_rows", "rows of windows in the first image")
            self.image_rows = reg("image_rows", "rows of windows left in the image")
        self.described = reg("described", "address of the next group's description")
        self.next_out = reg("next_out", "next group: address of its first output")
        self.next_bias = reg("next_bias", "next group: address of its biases")
        if not plan.even:
            self.next_filters = reg("next_filters", "next group: filters")
        if plan.slices == 1:
            self.biases = [reg(f"bias{age}", f"biases of the pixel of age {age}") for age in (0, 1)]
        else:
            self.slices_left = reg("slices_left", "slices left in the group")
            self.earlier = reg("earlier", "-1: earlier sums are where the output is; 0: biases")
            self.earlier_base = reg("earlier_base", "address of the biases, or 0")
        self.out_base = reg("out_base", "address of the group's first output")
        self.out_row = reg("out_row", "address of the row's first output")
        self.pixels = reg("pixels", "pixels left in the pass")
        self.row_left = reg("row_left", "pixels left in the row")
        if plan.rows_apart > 1:
            self.apart_left = reg("apart_left", "rows of windows left in the row")
            self.out_part = reg("out_part", "address of their first output")
        self.window = reg("window", "slot that the window begins with")
        ages = range(plan.pixels)
        self.result = [reg(f"r{age}_", f"result of the pixel of age {age}") for age in ages]
        self.out = [reg(f"out{age}", f"where it goes in memory, age {age}") for age in ages]
        # Pixels of several slices, with different thresholds, meet unless outputs are bytes.
        limits = 0 if plan.slices == 1 else 3 if plan.narrow is None else 1
        self.limit = [reg(f"limit{age}", f"its threshold, age {age}") for age in range(limits)]
        if plan.narrows_sums:
            self.sum = reg("sum", "address of the youngest pixel's partial sum")
        self.tmp = reg("tmp", "temporary")
        if layout.images == 1:
            self.first_rows = self.tmp
        self.tmp1 = reg("tmp1", "temporary")
        # Not both loops, or further pixels, at the same time as the thresholds' address.
        scarce = plan.rows_apart > 1 or plan.sums_together > 1
        self.tmp2 = self.limits if scarce else reg("tmp2", "temporary")
        self.one = w.constant("one", 1, "1")
        #: Numbers of the conversion to bytes, where registers are left for them.
        self.constants: dict[int, str] = {}
        if plan.narrow is not None and plan.slices == 1:
            pair = plan.places["thresholds"] + 3 * ELEMENT_BYTES
            numbers = (pair, ELEMENT_BYTES, *[plan.group_elements] * plan.even)
            for value in dict.fromkeys(numbers):
                self.constants[value] = w.constant(f"number{value}", value, "for bytes")
        self.length = w.constant("length", plan.length, "elements of a part")
        take = w.constant if plan.even else w.variable
        self.filters = take("filters", plan.filters, "filters at once")
        if plan.sums_together == 1:
            self.part = take("part", plan.filters * plan.length, "weights of a part")
        threshold = plan.places["thresholds"]
        self.lowest = w.constant("lowest", threshold, "threshold that changes nothing")
        if not plan.narrows_sums:
            self.relu = w.constant("relu", threshold + ELEMENT_BYTES, "threshold of outputs")
        self.stream = ConvStream(layout, w)
        if not w.registers_left:
            # No temporary is in use where addresses in memory advance.
            w.far = self.tmp

    def build(self) -> KernelBuilder:
        """Write the complete program."""
        w, plan = self.writer, self.plan
        self._begin()
        w.note("A pixel's turn.")
        w.label("pixel")
        self._pixel()
        w.op("bne", self.pixels, w.zero, "pixel")
        if self._turns_early:
            last = w.new_label("last")
            self._unless_last(last)
            self._load_weights(0)
            w.label(last)
        # Some vaults may have an image less.
        pixels = [
            len(rows) * plan.shape.out_width
            for images in (self.layout.images, max(1, self.layout.images - 1))
            for rows, _ in plan.shares(self.layout.sharers, images)
        ]
        if plan.narrows_sums:
            w.note("Only the last slice's sums become bytes: passes end with an empty pipeline.")
            self._flush()
        elif plan.slices > 1 and min(filter(None, pixels)) < plan.pixels:
            w.note("So few pixels: empty the pipeline before their sums are loaded again.")
            self._flush()
        self._next_pass()
        w.label("finish")
        if not plan.narrows_sums:
            self._flush()
        w.label("idle")
        w.op("halt")
        w.emit_detours()
        return w

    def _begin(self) -> None:
        w, plan = self.writer, self.plan
        words = (
            self.groups,
            self.rows,
            self.pass_pixels,
            self.first,
            self.weights,
            self.limits,
            self.spare,
            self.first_rows,
        )
        w.start(words, self.described, vault_bits=self.vault_bits)
        w.op("beq", self.groups, w.zero, "idle")
        w.note("Before loads, behind which it would wait.")
        self._describe()
        w.note("Weights of the first pass, thresholds.")
        for part in range(plan.parts):
            self._load_weights(part)
        w.op("li", self.tmp, 2 if plan.narrow is None else 4)
        w.load(self.lowest, self.limits, self.tmp, note="thresholds")
        self.stream.begin()
        w.note("Settings; an empty pipeline, whose stores go where nobody reads.")
        if plan.even:
            w.op("set.mr", self.filters)
        w.op("li", self.tmp, self.fraction)
        w.op("set.fx", self.tmp)
        w.op("mov", self.window, self.stream.ring)
        if plan.sums_together == 1:
            self._begin_ring()
        self._forget()
        for limit in self.limit:
            w.op("mov", limit, self.lowest)
        if plan.slices == 1:
            for biases in self.biases:
                w.op("li", biases, plan.places["biases"])
        self._begin_row()
        w.op("jmp", "group")

    def _forget(self) -> None:
        for out in self.out[1:]:
            self.writer.op("mov", out, self.spare)

    def _begin_ring(self) -> None:
        for age, result in enumerate(self.result):
            self.writer.op("li", result, self.plan.first_result(age))

    def _describe(self) -> None:
        words = [self.next_out, self.next_bias]
        if not self.plan.even:
            words += [self.next_filters, self.part]
        for word in words:
            self.writer.read(word, self.described)
        further = (self.layout.group_words - len(words)) * WORD_BYTES
        if further:
            self.writer.offset(self.described, self.described, further)

    def _load_weights(self, part: int) -> None:
        w, plan = self.writer, self.plan
        w.op("li", self.tmp1, part * plan.part_pitch)
        elements = self.tmp
        if plan.sums_together == 1:
            elements = self.part
        else:
            w.op("li", elements, plan.filters * plan.length)
        w.load(self.tmp1, self.weights, elements, note=f"weights of part {part}")
        w.offset(self.weights, self.weights, plan.part_bytes)

    @property
    def _turns_early(self) -> bool:
        """Whether a turn ends before the short instructions that follow its only product. The
        vector unit has no room for all four of those while the product lasts."""
        return self.plan.joined and self.plan.narrow is not None

    def _pixel(self) -> None:
        plan = self.plan
        if self._turns_early:
            self._product(0)
            self._transfers()
            self._turn()
            self._add(0, self.result[2])
            self._threshold(3)
            with self._bytes():
                self._pick_bytes(plan.packed_age + 1)
                if plan.byte_shift:
                    self.writer.op("set.vl", self.filters)
                    self._shift_byte(4)
            return
        for part in range(plan.parts):
            self._product(part)
            if part == 0:
                self._transfers()
            else:
                self._reload(part - 1)
            self._add(part, self.result[1])
            if part == 0:
                self._threshold(2)
            if plan.narrow is not None and part == min(1, plan.parts - 1):
                with self._bytes():
                    self._shift_byte(3)
            if plan.narrow is not None and part == min(2, plan.parts - 1):
                with self._bytes():
                    self._pick_bytes(plan.packed_age)
        self._reload(plan.parts - 1, pad=plan.parts > 1)
        self._turn()

    def _transfers(self) -> None:
        """Loads and stores: after a product and before the short instructions that follow it, which
        they would delay otherwise. Loads of single pixels take long before a row's first window."""
        sums_first = self.plan.column_loads > 1
        if sums_first:
            self._load_earlier()
        self.stream.load()
        self._store(-1, "sums of the oldest")
        if not sums_first:
            self._load_earlier()

    def _load_earlier(self) -> None:
        """Load the partial sum of the earlier slices, or the biases, for the youngest pixel."""
        w, plan = self.writer, self.plan
        if plan.slices == 1:
            return
        w.op("and", self.tmp, self.sum if plan.narrows_sums else self.out[0], self.earlier)
        w.op("add", self.tmp, self.tmp, self.earlier_base)
        w.offset(self.tmp1, self.result[0], plan.earlier)
        w.load(self.tmp1, self.tmp, self._sums(0, self.tmp2), note="earlier sums")

    def _product(self, part: int) -> None:
        w, plan = self.writer, self.plan
        column = self.window
        if part:
            column = self.tmp2
            distance = plan.slot_bytes if plan.sliding else plan.column_pitch
            w.offset(column, self.window, part * distance)
            if plan.sliding:
                self._wrap(column)
        result, weights = self.result[0], w.zero
        if part:
            result, weights = self.tmp, self.tmp1
            w.offset(result, self.result[0], part * plan.group_bytes)
            w.op("li", weights, part * plan.part_pitch)
        w.op("set.vl", self.length)
        product = "m.v.dot.add" if plan.bits < 16 else "m.v.mul.add"
        w.vector(product, result, weights, column, note=f"product of part {part}")
        w.op("set.vl", self.filters)
        if not plan.spaced:
            w.op("v.drain")

    def _wrap(self, pointer: str) -> None:
        w, distance = self.writer, self.plan.places.ring - self.plan.places.used
        w.seldom("bge", pointer, self.stream.ring_end, lambda: w.offset(pointer, pointer, distance))

    def _add(self, number: int, result: str) -> None:
        """Write addition ``number`` of a pixel: the sums of the parts after the first, then the
        earlier sums."""
        w, plan = self.writer, self.plan
        last = number + 1 == plan.parts
        if last and plan.slices == 1:
            w.vector("v.v.add", result, result, self.biases[1], note="add biases")
            w.op("mov", self.biases[1], self.biases[0])
            return
        operand, place = "earlier sums", plan.earlier
        if not last:
            operand, place = f"sum of part {number + 1}", (number + 1) * plan.group_bytes
        w.offset(self.tmp, result, place)
        w.vector("v.v.add", result, result, self.tmp, note=f"add {operand}")

    def _threshold(self, age: int) -> None:
        result = self.result[age]
        limit = self.limit[min(age, len(self.limit) - 1)] if self.limit else self.relu
        self.writer.vector("v.s.max", result, result, limit, note="raise to the threshold")

    @contextmanager
    def _bytes(self) -> Iterator[None]:
        """A context for instructions that only passes whose outputs are bytes execute, with few
        fraction bits."""
        w, sums = self.writer, self.plan.narrows_sums
        with w.unless("beq", self.limit[0], self.lowest) if sums else nullcontext():
            if self.fraction <= MOST_BYTE_FRACTION:
                yield
                return
            w.op("set.fx", w.zero)
            yield
            w.op("li", self.tmp, self.fraction)
            w.op("set.fx", self.tmp)

    def _shift_byte(self, age: int) -> None:
        """Shift each sum's byte to its element's high byte."""
        w, plan, result = self.writer, self.plan, self.result[age]
        if plan.byte_shift:
            w.op("li", self.tmp, plan.places["thresholds"] + 2 * ELEMENT_BYTES)
            w.vector("v.s.mul", result, result, self.tmp, note="shift to the high byte")

    def _pick_bytes(self, age: int) -> None:
        """Pack the high bytes of a pixel's elements."""
        w, result = self.writer, self.result[age]
        pair = self._number(self.plan.places["thresholds"] + 3 * ELEMENT_BYTES, self.tmp)
        w.op("set.vl", self._number(ELEMENT_BYTES, self.tmp1))
        w.op("m.v.mul.add [8-bit]", result, result, pair, note="pick the high bytes")

    def _number(self, value: int, spare: str) -> str:
        """A register with ``value``: that of a constant, or ``spare``."""
        if value in self.constants:
            return self.constants[value]
        self.writer.op("li", spare, value)
        return spare

    def _store(self, age: int, note: str = "") -> None:
        """Store the outputs of the pixel of this age, or partial sums of it and the next."""
        w, elements = self.writer, self.filters
        if self.plan.narrow is not None:
            if self.plan.even:
                elements = self._number(self.plan.group_elements, self.tmp)
            else:
                elements = self.tmp
                w.op("srl", elements, self.filters, 1)
        if self.plan.narrows_sums:
            with w.unless("bne", self.limit[0], self.lowest):
                sums = self._sums(age, elements)
                if sums != elements:
                    w.op("mov", elements, sums)
        w.store(self.out[age], self.result[age], elements, note=note)

    def _sums(self, age: int, spare: str) -> str:
        """A register with the elements of partial sums that move in the turn of the pixel of this
        age: ``filters``, or ``spare`` with those of two pixels for the first one, else 0."""
        if self.plan.sums_together == 1:
            return self.filters
        # The first one's slot has this bit in its address: as many as two have elements.
        self.writer.op("and", spare, self.result[age], self.plan.group_bytes)
        return spare

    def _reload(self, part: int, *, pad: bool = False) -> None:
        """In the last pixel of a pass, load the next pass's weights of ``part``."""
        w = self.writer
        skip = w.new_label("keep")
        w.op("bne", self.pixels, self.one, skip)
        self._unless_last(skip)
        if pad:
            w.offset(self.tmp, self.result[-1], self.plan.group_bytes)
            w.vector("v.s.max", self.tmp, self.tmp, self.lowest, note="pad: nobody reads it")
        self._load_weights(part)
        w.label(skip)

    def _unless_last(self, label: str) -> None:
        """Jump to ``label`` in the last pass."""
        w = self.writer
        if self.plan.slices == 1:
            w.op("beq", self.groups, self.one, label)
            return
        w.op("add", self.tmp, self.groups, self.slices_left)
        w.op("sub", self.tmp, self.tmp, self.one)
        w.op("beq", self.tmp, self.one, label)

    def _turn(self) -> None:
        w, plan = self.writer, self.plan
        w.note("All grow older.")
        w.op("mov", self.tmp, self.result[-1])
        for ring in (self.result, self.out, self.limit):
            for age in range(len(ring) - 1, 0, -1):
                w.op("mov", ring[age], ring[age - 1])
        if plan.narrows_sums:
            with w.unless("bne", self.limit[0], self.lowest):
                w.op("mov", self.out[1], self.sum)
            w.offset(self.sum, self.sum, plan.group_bytes)
        w.op("mov", self.result[0], self.tmp)
        w.note("Next window.")
        if plan.sliding:
            w.op("mov", self.stream.count, plan.advance)
        else:
            w.op("mov", self.stream.slot, self.window)
        w.offset(self.window, self.window, plan.advance * plan.slot_bytes)
        w.offset(self.out[0], self.out[0], self.layout.target.x_step * plan.pixel_step)
        w.op("sub", self.row_left, self.row_left, 1)
        w.seldom("beq", self.row_left, w.zero, self._next_row)
        self._wrap(self.window)
        w.op("sub", self.pixels, self.pixels, 1)

    def _next_row(self) -> None:
        w, plan = self.writer, self.plan
        begun = w.new_label("begun") if plan.rows_apart > 1 else ""
        if begun:
            w.op("sub", self.apart_left, self.apart_left, 1)
            self._begin_part()
            w.offset(self.out_part, self.out_part, self.layout.target.x_step)
            w.op("mov", self.out[0], self.out_part)
            w.op("bne", self.apart_left, w.zero, begun)
        self._begin_row()
        w.offset(self.out_row, self.out_row, self.layout.target.y_step, note="next row")
        if self.layout.images > 1:
            w.op("sub", self.image_rows, self.image_rows, 1)
            with w.unless("bne", self.image_rows, w.zero):
                rows, (_, step) = plan.shape.out_height, self.layout.steps
                gap = step - rows * self.layout.target.y_step
                w.offset(self.out_row, self.out_row, gap, note="next image")
                w.op("li", self.image_rows, rows)
        w.op("mov", self.out[0], self.out_row)
        if begun:
            w.op("mov", self.out_part, self.out_row)
            w.label(begun)
        if plan.sliding:
            w.op("mov", self.stream.count, plan.window_slots)
            slots = plan.window_slots - plan.advance
            w.offset(self.window, self.window, slots * plan.slot_bytes)

    def _begin_row(self) -> None:
        if self.plan.rows_apart > 1:
            self.writer.op("li", self.apart_left, self.plan.rows_apart)
        self._begin_part()

    def _begin_part(self) -> None:
        w, plan = self.writer, self.plan
        w.op("li", self.row_left, plan.row_windows)
        if plan.short_rows:
            w.op("li", self.tmp, plan.short_rows)
            with w.unless("blt", self.tmp, self.apart_left):
                w.op("sub", self.row_left, self.row_left, 1)

    def _next_pass(self) -> None:
        w, plan = self.writer, self.plan
        if plan.slices > 1:
            w.note("Next slice of the channels: sums go on from those in memory.")
            w.op("sub", self.slices_left, self.slices_left, 1)
            with w.unless("beq", self.slices_left, w.zero):
                w.op("li", self.earlier, -1)
                w.op("mov", self.earlier_base, w.zero)
                w.op("jmp", "pass")
        w.note("Next group of filters: sums start from the biases.")
        w.op("sub", self.groups, self.groups, 1)
        w.op("beq", self.groups, w.zero, "finish")
        if not plan.even:
            w.note("The next group may have more or fewer filters.")
            self._flush()
        w.label("group")
        if not plan.even:
            w.op("mov", self.filters, self.next_filters)
            w.op("set.mr", self.filters)
        w.op("mov", self.out_base, self.next_out)
        if plan.slices > 1:
            w.op("li", self.slices_left, plan.slices)
            w.op("mov", self.earlier, w.zero)
            w.op("mov", self.earlier_base, self.next_bias)
        else:
            w.note("The last pixel of the group before still needs its biases.")
            w.op("v.drain")
            w.op("li", self.tmp, 2 * plan.places["biases"] + plan.bias_bytes)
            w.op("sub", self.biases[0], self.tmp, self.biases[0])
            w.load(self.biases[0], self.next_bias, self.filters, note="biases")
        self._describe()
        w.label("pass")
        w.op("mov", self.pixels, self.pass_pixels)
        w.op("mov", self.out_row, self.out_base)
        if self.layout.images > 1:
            w.op("mov", self.image_rows, self.first_rows)
        w.op("mov", self.out[0], self.out_base)
        if plan.rows_apart > 1:
            w.op("mov", self.out_part, self.out_base)
        if plan.narrows_sums:
            w.offset(self.sum, self.spare, self.layout.sums)
        if plan.sums_together > 1:
            self._begin_ring()
        if self.limit:
            w.op("mov", self.limit[0], self.lowest)
            w.op("bne", self.slices_left, self.one, "pixel")
            note = "the last slice's sums are the outputs"
            if plan.narrows_sums:
                w.offset(self.limit[0], self.lowest, ELEMENT_BYTES, note=note)
            else:
                w.op("mov", self.limit[0], self.relu, note=note)
        w.op("jmp", "pixel")

    def _complete_bytes(self) -> None:
        """Complete the bytes of all pixels that have their sums."""
        w = self.writer
        with self._bytes():
            for age in range(1, self.plan.packed_age):
                self._shift_byte(age)
            w.op("v.drain")
            for age in range(1, self.plan.packed_age + 1):
                self._pick_bytes(age)
            w.op("v.drain")

    def _flush(self) -> None:
        """Complete all pixels in the pipeline."""
        w, plan = self.writer, self.plan
        w.note("Complete the pixels in the pipeline.")
        w.op("v.drain")
        if plan.narrow is not None:
            w.op("set.vl", self.filters)
        self._threshold(2)
        for part in range(plan.parts):
            self._add(part, self.result[1])
            w.op("v.drain")
        self._threshold(1)
        w.op("v.drain")
        if plan.narrow is not None:
            self._complete_bytes()
        for age in range(plan.pixels - 1, 0, -1):
            self._store(age)
        self._forget()
