"""Generator of the BP-M kernel with a matrix, one line at a time, for variants of the update.

It computes what :mod:`microkernels.bp.kernel` does, with edge weights or damping
(:mod:`microkernels.bp.variants.variant`), in the frame of the kernels by shifts
(:mod:`microkernels.bp.shifts.lane_frame`). A body for each slot ``a b c`` of the ring, after a
``v.drain``, when the last update is complete: its message is stored, a new update is loaded into
its slot, and then ::

    W = S * weight                             the matrix of this edge; without weights it is S
    a = a + incoming                           t
    a' = a' + b'                               q of the next update
    b = min(W + a)                             r
    a' = a' + c'                               p of the next update
    c = b - b[0]                               n, without damping the message
    a = o - c    a = a * damping    m = c + a  with damping

The products with a matrix take most of the time, so further drains between short vectors cost
little.
"""

from dataclasses import dataclass
from functools import lru_cache

from isa.program import Program
from isa.table import MAX_VL, Width
from microkernels.common.builder import DEFAULT_SCRATCHPAD, KernelBuilder
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import round_up

from ..problem import element_type
from ..record import LOADED_VECTORS, vector_stride
from ..shifts.lane_frame import LaneFrame
from ..shifts.lane_parts import LaneParts
from .variant import Variant

__all__ = ["PlainPlan", "plain_plan", "plain_program"]

_ALIGN = 16
#: Slots of the ring; a program with more would not fit an engine.
_FEWEST_SLOTS, _MOST_SLOTS = 2, 4


@dataclass(frozen=True)
class PlainPlan:
    """Byte addresses in the scratchpad.

    Attributes:
        matrix, elements: of the data that is loaded before the first run: the matrix and, with
            damping, the sixteenths.
        weighted: of the matrix times a weight; without weights the matrix.
        message: of ``m``.
        ring, slot, slots: as of :class:`microkernels.bp.schedule.ScratchpadPlan`.
        vector: bytes from a vector of a slot to the next: ``a``, ``b``, ``c``, the first message of
            a line, with damping the message that is replaced.
        used: bytes of all.
    """

    matrix: int
    elements: int
    weighted: int
    message: int
    ring: int
    slot: int
    slots: int
    vector: int
    used: int


def plain_plan(labels: int, bits: int, scratchpad_bytes: int, variant: Variant) -> PlainPlan:
    """The plan with as many slots as fit.

    Raises:
        KernelError: two slots do not fit; names the most labels that do.
    """
    found = _place(labels, bits, scratchpad_bytes, variant)
    if found.slots >= _FEWEST_SLOTS:
        return found
    most = labels
    while most and _place(most, bits, scratchpad_bytes, variant).slots < _FEWEST_SLOTS:
        most -= 1
    what = "edge weights" if variant.weighted else "damping"
    raise KernelError(
        f"{labels} labels of {bits} bits with {what} do not fit a scratchpad of "
        f"{scratchpad_bytes} bytes by a matrix; 1 to {most} do"
    )


def _place(labels: int, bits: int, scratchpad_bytes: int, variant: Variant) -> PlainPlan:
    size = element_type(bits).itemsize
    elements = labels * labels + variant.damped
    weighted = round_up(elements * size, _ALIGN)
    message = weighted + (round_up(labels * labels * size, _ALIGN) if variant.weighted else 0)
    ring = message + round_up(labels * size, _ALIGN)
    vector = vector_stride(labels + variant.tail, bits)
    slot = round_up((LOADED_VECTORS + 1 + variant.damped) * vector, _ALIGN)
    slots = min(_MOST_SLOTS, max(0, scratchpad_bytes - ring) // slot)
    return PlainPlan(
        matrix=0,
        elements=elements,
        weighted=weighted if variant.weighted else 0,
        message=message,
        ring=ring,
        slot=slot,
        slots=slots,
        vector=vector,
        used=ring + slot * slots,
    )


@lru_cache(maxsize=8)
def plain_program(
    labels: int,
    bits: int,
    variant: Variant,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
    vault_bits: int | None = None,
) -> Program:
    """The program.

    Parameters:
        labels, bits, scratchpad_bytes, vault_bits: as for
            :func:`microkernels.bp.kernel.bp_builder`.
        variant: of the updates, not the usual one.

    Raises:
        KernelError: labels that don't fit the scratchpad.
    """
    places = plain_plan(labels, bits, scratchpad_bytes, variant)
    builder = _PlainKernel(labels, bits, places, vault_bits, variant).build()
    return builder.program(f"bp_m_variant_{labels}x{bits}.s")


class _PlainKernel(LaneFrame):
    """The program."""

    def __init__(
        self, labels: int, bits: int, places: PlainPlan, vault_bits: int | None, variant: Variant
    ) -> None:
        self.places = places
        writer = KernelBuilder(
            f"BP-M on a tile with edge weights or damping: {labels} labels of {bits} bits.",
            "Generated by microkernels.bp.variants.plain, which explains it.",
            f"Scratchpad ({places.used} bytes): smoothness costs, message, and a ring of "
            f"{places.slots} slots of {places.slot} bytes: a, b, c, first message.",
            launch=("vault", "slot", "parameters"),
            width=Width[f"W{bits}"],
            place_drains=True,
        )
        self.parts = p = LaneParts(labels, bits, 1, places.slots, writer, variant=variant)
        p.set_places((places.message,), places.ring, places.slot, places.vector)
        writer.constant("W", places.weighted, "smoothness costs times the weight")
        self.z = writer.register("z", "an operand")
        first = LOADED_VECTORS * places.vector
        super().__init__(p, vault_bits, first_message=first, old=first + places.vector)
        self._first_message_place = first

    def set_lengths(self) -> None:
        """All rows of the matrix."""
        self._set_rows()
        self.parts.set_fraction()

    def _set_rows(self) -> None:
        # Repeated after labels, so that the builder knows the lengths and places drains.
        self.parts.writer.op("set.vl", "labels")
        self.parts.writer.op("set.mr", "labels")

    def load_costs(self) -> None:
        """The matrix, and the sixteenths of damping."""
        p, w = self.parts, self.parts.writer
        w.op("mov", p.x, self.places.matrix)
        w.op("li", p.y, self.places.elements)
        w.load(p.x, p.costs, p.y)

    def emit_streams(self) -> None:
        """Update all lines of a run."""
        p, w = self.parts, self.parts.writer
        self.spread()
        self.begin()
        self._start_line(0)
        self._set_rows()
        self._presum(0)
        w.note("First update.")
        self._update(0)
        self._end_of_update(0)
        w.note("One body for each slot.")
        for n in range(1, p.slots + 1):
            w.label(f"body_{n % p.slots}")
            w.note(f"Body {n % p.slots}.")
            w.op("v.drain")
            self._set_rows()
            self.store(n - 1)
            self.load(n - 1 + p.slots)
            self._update(n)
            self._end_of_update(n)
        w.op("jmp", f"body_{1 % p.slots}")
        self.emit_detours()
        w.note("Last message.")
        w.label("last")
        self.describe()
        w.op("v.drain")
        w.store(p.store[0], p.message[0], "labels")
        w.op("jmp", "run_end")

    def _start_line(self, n: int) -> None:
        p = self.parts
        p.writer.op("add", p.incoming[0], p.slot(n), self._first_message_place)

    def _presum(self, n: int, *, both: bool = True) -> None:
        """``q`` of an update and, unless it has been written before, ``p``."""
        p, w = self.parts, self.parts.writer
        slot = p.slot(n)
        w.op("add", p.x, slot, self.places.vector)
        w.vector("v.v.add", slot, slot, p.x, note="q")
        if both:
            self._partial(n)

    def _partial(self, n: int) -> None:
        p, w = self.parts, self.parts.writer
        slot = p.slot(n)
        w.op("add", p.x, slot, 2 * self.places.vector)
        w.vector("v.v.add", slot, slot, p.x, note="p")

    def _update(self, n: int) -> None:
        p, w, places = self.parts, self.parts.writer, self.places
        a = p.slot(n)
        if p.variant.weighted:
            self._scale(a)
        if n == 0:
            w.op("v.drain")
        w.vector("v.v.add", a, a, p.incoming[0], note="t")
        w.op("mov", p.incoming[0], p.message[0])
        self._presum(n + 1, both=False)
        w.op("add", p.y, a, places.vector)
        w.vector("m.v.add.min", p.y, "W", a, note="r = min(W + t)")
        self._partial(n + 1)
        if not p.variant.damped:
            w.vector("v.s.sub", p.message[0], p.y, p.y, note="m = r - r[0]")
            return
        w.op("add", p.x, a, 2 * places.vector)
        w.vector("v.s.sub", p.x, p.y, p.y, note="n = r - r[0]")
        w.op("add", p.y, a, self._first_message_place + places.vector)
        w.vector("v.v.sub", a, p.y, p.x, note="d = o - n")
        p.take_share(a, places.matrix + p.labels * p.labels * p.size)
        w.vector("v.v.add", p.message[0], p.x, a, note="m = n + f")

    def _scale(self, slot: str) -> None:
        """The matrix of an edge: as few instructions as vector lengths allow."""
        p, w, places = self.parts, self.parts.writer, self.places
        elements = p.labels * p.labels
        w.op("add", p.y, slot, p.weight)
        for start in range(0, elements, MAX_VL):
            count = min(MAX_VL, elements - start)
            if start == 0 or count != MAX_VL:
                w.op("mov", p.x, count)
                w.op("set.vl", p.x)
            w.op("mov", p.x, places.matrix + start * p.size)
            w.op("mov", self.z, places.weighted + start * p.size)
            w.vector("v.s.mul", self.z, p.x, p.y, note="W = S * weight")
        w.op("set.vl", "labels")

    def _end_of_update(self, n: int) -> None:
        p, w = self.parts, self.parts.writer
        w.op("sub", p.left, p.left, 1)

        def next_line() -> None:
            w.op("sub", p.groups, p.groups, 1)
            w.op("beq", p.groups, p.zero, "last")
            w.op("mov", p.left, p.updates)
            self._start_line(n + 1)

        self.seldom("beq", p.left, p.zero, next_line)
