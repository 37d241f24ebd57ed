"""Scratchpad plan and instruction spacing of the belief propagation kernel.

Spacing. A vector of ``b`` beats (64-bit words) read by one instruction must have been produced
:data:`isa.timing.VECTOR_LATENCY` cycles before. The kernel works on two lines at a time, X and Y,
so that between two steps of one line there is always work of the other. The instructions in the
order of the vector unit, with ``a b c`` the loaded vectors and ``m`` the latest message::

    q = a + b   t = Xp + Xm   Ym = Yr - Yr[0]   Yp = q + c   Xr = min(S + t)
    q = a + b   t = Yp + Ym   Xm = Xr - Xr[0]   Xp = q + c   Yr = min(S + t)

``q`` is read three instructions later, ``t`` three, the last elements of ``r`` three, ``p`` and
``m`` after a long instruction: vectors of 3 beats or more are far enough apart. Shorter ones get
*pads* between them: instructions that add smoothness costs into a vector that is not used. Pads
cost fewer cycles than ``v.drain``.

A lone line (the last of an odd number) has no partner; pads take the place of the other line::

    q = a + b   pad   m = r - r[0]   pad   pad   t = p + m   pad   p = q + c   r = min(S + t)
"""

from dataclasses import dataclass

from isa.table import MAX_VL
from isa.timing import RANGE_BYTES, VECTOR_LATENCY, WORD_BYTES
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import round_up

from .problem import element_type
from .record import LOADED_VECTORS, vector_stride

__all__ = ["LANES", "ScratchpadPlan", "Spacing", "most_labels", "plan"]

#: Lines that are worked on at a time.
LANES = 2
#: Fewest update inputs in the ring: a lone line looks two updates ahead while it reads one.
MIN_SLOTS = 4


@dataclass(frozen=True)
class Spacing:
    """Pads between vector instructions.

    Attributes:
        before_total, after_total: before and after ``t`` of a pair's update.
        lone: between a lone line's ``m`` and ``t``.
        lone_filled: in a lone line's two gaps that hold another instruction, before ``m`` and after
            ``t``.
    """

    before_total: int
    after_total: int
    lone: int
    lone_filled: int

    @classmethod
    def of(cls, labels: int, bits: int) -> "Spacing":
        """The pads for vectors of ``labels`` elements of ``bits`` bits."""
        beats = -(-labels * bits // 8 // WORD_BYTES)
        apart = -(-VECTOR_LATENCY // beats)
        return cls(
            # Between p and the t that reads it come r, of one row for each label, and q.
            before_total=max(0, apart - 2 - labels),
            after_total=max(0, apart - 3),
            lone=max(0, apart - 1),
            lone_filled=max(0, apart - 2),
        )


@dataclass(frozen=True)
class ScratchpadPlan:
    """Byte addresses in the scratchpad.

    Attributes:
        matrix: smoothness costs, rows contiguous.
        presum: ``q``. partial: ``p``. total: ``t``. pad: where pads write.
        raw, message: ``r`` and ``m`` of each of the two lines.
        ring, slot, slots: ring of update inputs: address, bytes of one, and how many. A slot holds
            the three loaded vectors and, after them, at the first update of a line, the message
            that begins the line.
        vector: bytes from a vector to the next.
        used: bytes of all.
    """

    matrix: int
    presum: int
    partial: int
    total: int
    pad: int
    raw: tuple[int, int]
    message: tuple[int, int]
    ring: int
    slot: int
    slots: int
    vector: int
    used: int

    @property
    def ring_end(self) -> int:
        """First byte after the ring."""
        return self.ring + self.slot * self.slots

    @property
    def first_message(self) -> int:
        """Offset in a slot of the message that begins a line."""
        return LOADED_VECTORS * self.vector


def _place(labels: int, bits: int, slots: int) -> ScratchpadPlan:
    vector = vector_stride(labels, bits)
    matrix = labels * labels * element_type(bits).itemsize
    # So that slots share no range, and none waits for a load into another one.
    start = round_up(matrix, RANGE_BYTES)
    places = [start + number * vector for number in range(8)]
    presum, partial, total, pad, raw_x, raw_y, message_x, message_y = places
    ring = message_y + vector
    slot = (LOADED_VECTORS + 1) * vector
    return ScratchpadPlan(
        matrix=0,
        presum=presum,
        partial=partial,
        total=total,
        pad=pad,
        raw=(raw_x, raw_y),
        message=(message_x, message_y),
        ring=ring,
        slot=slot,
        slots=slots,
        vector=vector,
        used=ring + slot * slots,
    )


@CHECK.arguments
def most_labels(bits: int, scratchpad_bytes: int) -> int:
    """The largest number of labels whose working set fits; 0 when none does."""
    labels = 0
    while labels < MAX_VL and _place(labels + 1, bits, MIN_SLOTS).used <= scratchpad_bytes:
        labels += 1
    return labels


@CHECK.arguments
def plan(labels: int, bits: int, slots: int, scratchpad_bytes: int) -> ScratchpadPlan:
    """Scratchpad plan with a ring of ``slots`` slots, or of fewer (at least 4) when they don't fit.

    Raises:
        KernelError: an element width, number of labels or of slots that is not allowed.
    """
    if slots < MIN_SLOTS or slots % LANES:
        raise KernelError(f"slots must be an even number of at least {MIN_SLOTS}, not {slots}")
    most = most_labels(bits, scratchpad_bytes)
    if not 1 <= labels <= most:
        raise KernelError(
            f"{labels} labels of {bits} bits do not fit a scratchpad of {scratchpad_bytes} bytes; "
            f"1 to {most} do"
        )
    while _place(labels, bits, slots).used > scratchpad_bytes:
        slots -= LANES
    return _place(labels, bits, slots)
