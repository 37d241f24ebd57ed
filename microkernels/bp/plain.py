"""Generates the BP-M kernel with a matrix, one line at a time, for variants of the update.

It computes what :mod:`microkernels.bp.kernel` does, with edge weights or damping
(:mod:`microkernels.bp.problem`), in the frame of the kernels by shifts
(:class:`microkernels.bp.frame.LaneFrame`). There is one body per ring slot ``a b c``. After a
``v.drain``, which completes the last update, its message is stored, a new update is loaded into its
slot, and then ::

    W = S * weight                             the matrix of this edge; without weights it is S
    a = a + incoming                           t
    a' = a' + b'                               q of the next update
    b = min(W + a)                             r
    a' = a' + c'                               p of the next update
    c = b - b[0]                               n, without damping the message
    a = o - c    a = a * damping    m = c + a  with damping

Products with a matrix take most of the time, so more drains between short vectors cost little.
"""

from functools import cached_property
from typing import ClassVar

from isa.table import MAX_VL
from microkernels.common.builder import KernelBuilder
from microkernels.common.scratchpad_plan import ScratchpadPlan

from .frame import LaneFrame
from .kernel import MatrixPlan
from .record import LOADED_VECTORS, vector_stride
from .shifts.rhythm import beats_of

#: Slots of the ring; with more, a program would not fit an engine.
_FEWEST_SLOTS, _MOST_SLOTS = 2, 4


class VariantPlan(MatrixPlan):
    """The kernel by a matrix, one line at a time, for edge weights or damping."""

    stem: ClassVar[str] = "variant_"

    @property
    def lines(self) -> int:
        return 1

    @cached_property
    def pad(self) -> ScratchpadPlan:
        """The places.

        Raises:
            KernelError: two slots do not fit the scratchpad; the message names the maximum number
                of labels.
        """
        pad = self._places(self.labels)
        if pad.slots >= _FEWEST_SLOTS:
            return pad
        limit = self.labels
        while limit and self._places(limit).slots < _FEWEST_SLOTS:
            limit -= 1
        kind = " with edge weights" if self.variant.weighted else " with damping"
        raise self.no_room(f" by a matrix; 1 to {limit} fit", kind)

    def _places(self, labels: int) -> ScratchpadPlan:
        """The ``matrix``, followed with damping by the sixteenths; with weights, the matrix times
        one; the message. A slot contains ``a``, ``b``, ``c``, a line's first message, and with
        damping the message being replaced."""
        pad, size, variant = ScratchpadPlan(), self.size, self.variant
        pad.take("matrix", (labels * labels + variant.damped) * size)
        pad.take("weighted", labels * labels * size if variant.weighted else 0)
        pad.take("m0", labels * size)
        pad.take_ring(
            LOADED_VECTORS + 1 + variant.damped,
            vector_stride(labels + variant.tail, self.bits),
            room=self.scratchpad_bytes,
            most=_MOST_SLOTS,
        )
        return pad

    @property
    def cycles(self) -> float:
        """Cycles of the loop; the matrix times a weight is one long vector."""
        cycles = super().cycles
        if self.variant.weighted:
            cycles += beats_of(self.labels**2, self.bits) - beats_of(self.labels, self.bits)
        return cycles

    def builder(self, vault_bits: int | None) -> KernelBuilder:
        """As for :class:`.plan.Plan`."""
        return _PlainKernel(self, vault_bits).build()


class _PlainKernel(LaneFrame):
    """The kernel with a matrix, one line at a time."""

    place_drains = True

    def __init__(self, plan: VariantPlan, vault_bits: int | None) -> None:
        super().__init__(plan, vault_bits)
        self.set_places()
        matrix = self.pad["weighted" if self.variant.weighted else "matrix"]
        self.writer.constant("W", matrix, "smoothness costs times the weight")
        self.z = self.writer.register("z", "an operand")

    def set_lengths(self) -> None:
        """Set the vector length and all rows of the matrix."""
        self._set_rows()
        self.set_fraction()

    def _set_rows(self) -> None:
        # Repeated after labels so that the builder knows the lengths and places drains.
        self.writer.op("set.vl", "labels")
        self.writer.op("set.mr", "labels")

    def load_costs(self) -> None:
        """Load the matrix, and the sixteenths of damping."""
        w = self.writer
        w.op("mov", self.x, self.pad["matrix"])
        w.op("li", self.y, self.labels * self.labels + self.variant.damped)
        w.load(self.x, self.run.costs, self.y)

    def emit_streams(self) -> None:
        """Update all lines of a run."""
        w = self.writer
        self.spread()
        self.begin()
        self._start_line(0)
        self._set_rows()
        self._presum(0)
        w.note("First update.")
        self._update(0)
        self._end_of_update(0)
        w.note("One body for each slot.")
        for n in range(1, self.pad.slots + 1):
            w.label(f"body_{n % self.pad.slots}")
            w.note(f"Body {n % self.pad.slots}.")
            w.op("v.drain")
            self._set_rows()
            self.store(n - 1)
            self.load(n - 1 + self.pad.slots)
            self._update(n)
            self._end_of_update(n)
        w.op("jmp", f"body_{1 % self.pad.slots}")
        w.emit_detours()
        self.store_last()

    def _start_line(self, n: int) -> None:
        self.writer.op("add", self.incoming[0], self.slot(n), self.first_place)

    def _presum(self, n: int, *, both: bool = True) -> None:
        """Compute ``q`` of an update and, unless already written, ``p``."""
        w = self.writer
        slot = self.slot(n)
        w.op("add", self.x, slot, self.pad.vector)
        w.vector("v.v.add", slot, slot, self.x, note="q")
        if both:
            self._partial(n)

    def _partial(self, n: int) -> None:
        w = self.writer
        slot = self.slot(n)
        w.op("add", self.x, slot, 2 * self.pad.vector)
        w.vector("v.v.add", slot, slot, self.x, note="p")

    def _update(self, n: int) -> None:
        w, pad = self.writer, self.pad
        a = self.slot(n)
        if self.variant.weighted:
            self._scale(a)
        if n == 0:
            w.op("v.drain")
        w.vector("v.v.add", a, a, self.incoming[0], note="t")
        w.op("mov", self.incoming[0], self.message[0])
        self._presum(n + 1, both=False)
        w.op("add", self.y, a, pad.vector)
        w.vector("m.v.add.min", self.y, "W", a, note="r = min(W + t)")
        self._partial(n + 1)
        if not self.variant.damped:
            w.vector("v.s.sub", self.message[0], self.y, self.y, note="m = r - r[0]")
            return
        w.op("add", self.x, a, 2 * pad.vector)
        w.vector("v.s.sub", self.x, self.y, self.y, note="n = r - r[0]")
        w.op("add", self.y, a, self.first_place + pad.vector)
        w.vector("v.v.sub", a, self.y, self.x, note="d = o - n")
        self.take_share(a, pad["matrix"] + self.labels * self.labels * self.size)
        w.vector("v.v.add", self.message[0], self.x, a, note="m = n + f")

    def _scale(self, slot: str) -> None:
        """Scale an edge's matrix with as few instructions as vector lengths allow."""
        w, pad = self.writer, self.pad
        elements = self.labels * self.labels
        w.op("add", self.y, slot, self.weight)
        for start in range(0, elements, MAX_VL):
            count = min(MAX_VL, elements - start)
            if start == 0 or count != MAX_VL:
                w.op("mov", self.x, count)
                w.op("set.vl", self.x)
            w.op("mov", self.x, pad["matrix"] + start * self.size)
            w.op("mov", self.z, pad["weighted"] + start * self.size)
            w.vector("v.s.mul", self.z, self.x, self.y, note="W = S * weight")
        w.op("set.vl", "labels")

    def _end_of_update(self, n: int) -> None:
        self.end_of_update("last", lambda: self._start_line(n + 1))
