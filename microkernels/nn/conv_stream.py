"""The loads of a convolution's input, as :mod:`microkernels.nn.conv_kernel` places them."""

from microkernels.common.builder import KernelBuilder
from microkernels.common.feature_map import FeatureMap

from .conv_plan import ConvPlan


class ConvStream:
    """Loads slot after slot of the input ring: all windows of the tile, slice by slice, again for
    every group of filters. The stream does not end: data loaded beyond the last window is not used.

    Parameters:
        plan: partition of the layer.
        source: the image.
        writer: the builder to write to.
        rows: register with the number of window rows.
        first: register with the address of the first window.

    Attributes:
        count: register with the number of slots to load, where windows share slots.
        slot: register with the slot to load next.
        ring, ring_end: registers with the ring's bounds.
    """

    def __init__(
        self, plan: ConvPlan, source: FeatureMap, writer: KernelBuilder, *, rows: str, first: str
    ) -> None:
        self.plan = plan
        self.source = source
        self.writer = w = writer
        self._rows = rows
        self._first = first
        self.count = w.register("freed", "slots to load")
        self.slot = w.register("load_slot", "slot to load next")
        self._from = w.register("load_from", "where its first column is in memory")
        self._row = w.register("load_row", "where the first column of its row of windows is")
        self._plane = w.register("load_plane", "where the first column of its slice is")
        self._row_left = w.register("load_row_left", "slots left in the row")
        self._rows_left = w.register("load_rows_left", "rows left in the slice")
        self._slices_left = w.register("load_slices_left", "slices left")
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
        self._elements = w.constant(
            "piece_size", plan.load_elements, "elements of a load of the input"
        )

    def begin(self) -> None:
        """Fill the ring, starting with the first window."""
        w, plan = self.writer, self.plan
        w.note("Fill the input ring.")
        w.op("mov", self.slot, self.ring)
        w.op("mov", self._plane, self._first)
        w.op("li", self._slices_left, plan.slices)
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
            for _ in range(1, plan.slot_loads):
                w.offset(piece, piece, plan.column_pitch)
                w.offset(memory, memory, self.source.x_step)
                w.load(piece, memory, self._elements)
        if plan.repeated:
            w.seldom("blt", self.slot, self._again, self._repeat_slot)
        advance = 1 if plan.sliding else plan.shape.stride
        w.offset(self._from, self._from, self.source.x_step * advance)
        w.op("sub", self._row_left, self._row_left, 1)
        w.seldom("beq", self._row_left, w.zero, self._next_row)

    def _repeat_slot(self) -> None:
        w, plan, piece = self.writer, self.plan, self._pieces[0]
        w.offset(piece, self.slot, plan.slots * plan.slot_bytes)
        w.load(piece, self._from, self._elements, note="again, after the ring's end")

    def _next_row(self) -> None:
        w, plan = self.writer, self.plan
        step = self.source.down_step(plan.shape.step_down)
        w.offset(self._row, self._row, step, note="next row")
        self._begin_row()
        w.op("sub", self._rows_left, self._rows_left, 1)
        with w.unless("bne", self._rows_left, w.zero):
            w.offset(self._plane, self._plane, self.source.slice_step, note="next slice")
            w.op("sub", self._slices_left, self._slices_left, 1)
            with w.unless("bne", self._slices_left, w.zero):
                w.op("mov", self._plane, self._first, note="all slices again for the next group")
                w.op("li", self._slices_left, plan.slices)
            self._begin_plane()

    def _begin_plane(self) -> None:
        w = self.writer
        w.op("mov", self._row, self._plane)
        w.op("mov", self._rows_left, self._rows)
        self._begin_row()

    def _begin_row(self) -> None:
        w = self.writer
        w.op("mov", self._from, self._row)
        w.op("li", self._row_left, self.plan.row_slots)
