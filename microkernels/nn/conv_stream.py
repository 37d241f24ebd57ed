"""Code of the convolution kernel that streams a tile's windows through the scratchpad."""

from microkernels.common.builder import KernelBuilder
from microkernels.common.feature_map import FeatureMap

from .conv_plan import ConvPlan

__all__ = ["ConvStream"]


class ConvStream:
    """Loads slot after slot of the input ring: all windows of the tile, slice after slice, again
    for every group of filters. The stream does not end: data loaded beyond the last window are not
    used.

    Parameters:
        plan: partition of the layer.
        source: the image.
        writer: takes the text.
        rows: register with the number of rows of windows.
        first: register with the address of the first window.

    Attributes:
        count: register with the number of slots that :meth:`load` loads.
        ring, ring_end: registers with the ring's place.
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
        self._slot = w.register("load_slot", "slot to load next")
        self._from = w.register("load_from", "where its first column is in memory")
        self._row = w.register("load_row", "where the first column of its row of windows is")
        self._plane = w.register("load_plane", "where the first column of its slice is")
        self._row_left = w.register("load_row_left", "slots left in the row")
        self._rows_left = w.register("load_rows_left", "rows left in the slice")
        self._slices_left = w.register("load_slices_left", "slices left")
        self._pieces = (w.register("piece", "for one load"), w.register("piece_from", "likewise"))
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
        """Fill the ring from the first window on."""
        w, plan = self.writer, self.plan
        w.note("Fill the input ring.")
        w.op("mov", self._slot, self.ring)
        w.op("mov", self._plane, self._first)
        w.op("li", self._slices_left, plan.slices)
        self._begin_plane()
        w.op("li", self.count, plan.slots)
        self.load("fill")

    def load(self, name: str) -> None:
        """Load :attr:`count` (0 or more) slots, and leave it at 0. ``name``: stem of the labels."""
        w, plan, shape = self.writer, self.plan, self.plan.shape
        again, done, same = name, f"{name}_done", f"{name}_same"
        w.op("beq", self.count, w.zero, done)
        w.label(again)
        w.load(self._slot, self._from, self._elements, note="input")
        if plan.slot_loads > 1:
            piece, memory = self._pieces
            w.op("mov", piece, self._slot)
            w.op("mov", memory, self._from)
            for _ in range(1, plan.slot_loads):
                w.offset(piece, piece, plan.column_pitch)
                w.offset(memory, memory, self.source.x_step)
                w.load(piece, memory, self._elements)
        if plan.repeated:
            piece = self._pieces[0]
            with w.unless("bge", self._slot, self._again):
                w.offset(piece, self._slot, plan.slots * plan.slot_bytes)
                w.load(piece, self._from, self._elements, note="again, after the ring's end")
        advance = 1 if plan.sliding else shape.stride
        w.offset(self._from, self._from, self.source.x_step * advance)
        w.advance_ring(self._slot, plan.slot_bytes, self.ring, self.ring_end)
        w.op("sub", self._row_left, self._row_left, 1)
        w.op("bne", self._row_left, w.zero, same)
        w.offset(self._row, self._row, self.source.down_step(shape.step_down), note="next row")
        self._begin_row()
        w.op("sub", self._rows_left, self._rows_left, 1)
        w.op("bne", self._rows_left, w.zero, same)
        w.offset(self._plane, self._plane, self.source.slice_step, note="next slice")
        w.op("sub", self._slices_left, self._slices_left, 1)
        deeper = f"{name}_deeper"
        w.op("bne", self._slices_left, w.zero, deeper)
        w.op("mov", self._plane, self._first, note="all slices again for the next group")
        w.op("li", self._slices_left, plan.slices)
        w.label(deeper)
        self._begin_plane()
        w.label(same)
        w.op("sub", self.count, self.count, 1)
        w.op("bne", self.count, w.zero, again)
        w.label(done)

    def _begin_plane(self) -> None:
        w = self.writer
        w.op("mov", self._row, self._plane)
        w.op("mov", self._rows_left, self._rows)
        self._begin_row()

    def _begin_row(self) -> None:
        w = self.writer
        w.op("mov", self._from, self._row)
        w.op("li", self._row_left, self.plan.row_slots)
