"""The loads of a convolution's input, as :mod:`microkernels.nn.conv_kernel` places them."""

from microkernels.common.builder import WORD_BYTES, KernelBuilder
from microkernels.common.fixed_point import ELEMENT_BYTES

from .conv_layout import ConvLayout


class ConvStream:
    """Loads slot after slot of the input ring: all windows of the tile, slice by slice, again for
    every group of filters. After the last group, loads have no elements if the engine has begun it;
    otherwise, in rings that hold a whole pass, data are loaded that nobody uses.

    Parameters:
        layout: of the layer.
        writer: the builder to write to.
        rows: register with the number of window rows.
        first: register with the address of the first window.
        first_rows: register with the number of window rows in the first image.
        described: register with the address of the second group's description when the stream
            begins.
        groups: register with the number of groups left, at least 1.

    Attributes:
        count: register with the number of slots to load, where windows share slots.
        slot: register with the slot to load next.
        ring, ring_end: registers with the ring's bounds.
    """

    def __init__(
        self,
        layout: ConvLayout,
        writer: KernelBuilder,
        *,
        rows: str,
        first: str,
        first_rows: str,
        described: str,
        groups: str,
    ) -> None:
        self.layout = layout
        self.plan = plan = layout.plan
        self.source = layout.source
        self._described = described
        self._groups = groups
        self.writer = w = writer
        self._rows = rows
        self._first = first
        self._first_rows = first_rows
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
        self.ring = w.constant("ring", plan.ring, "input ring")
        self.ring_end = w.constant("ring_end", plan.ring_end, "its end")
        if plan.repeated:
            self._again = w.constant(
                "repeated_end", plan.ring + plan.repeated * plan.slot_bytes, "end of repeated slots"
            )
        self._elements = w.variable(
            "piece_size", plan.load_elements, "elements of a load of the input; 0 at the end"
        )

    def begin(self) -> None:
        """Fill the ring, starting with the first window."""
        w, plan = self.writer, self.plan
        w.note("Fill the input ring.")
        w.op("mov", self.slot, self.ring)
        w.op("mov", self._plane, self._first)
        if plan.slices > 1:
            w.op("li", self._slices_left, plan.slices)
        if plan.shape.groups > 1:
            words = self.layout.group_words - 1
            w.offset(self._next_window, self._described, words * WORD_BYTES)
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
        w.op("sub", self._plane, self._groups, 1)
        with w.unless("bne", self._plane, w.zero):
            w.op("mov", self._elements, w.zero)
        if self.plan.shape.groups == 1:
            w.op("mov", self._plane, self._first, note=again)
            return
        begun = w.new_label("group_begun")
        w.op("ld.reg [64-bit]", self._plane, self._next_window, note="slices of the next group")
        with w.unless("beq", self._plane, w.zero):
            w.op("sub", self._plane, self._plane, 1)
            w.offset(self._next_window, self._next_window, self.layout.group_words * WORD_BYTES)
            w.op("jmp", begun)
        w.op("mov", self._plane, self._first, note="after the last group")
        w.label(begun)

    def _begin_plane(self) -> None:
        w = self.writer
        w.op("mov", self._row, self._plane)
        w.op("mov", self._rows_left, self._rows)
        if self.layout.images > 1:
            w.op("mov", self._image_rows, self._first_rows)
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
