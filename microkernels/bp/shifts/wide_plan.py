"""Scratchpad and order of instructions of messages by shifts with many labels.

Vectors of :data:`LEAST_BEATS` beats or more hide the latency of results, so one line is enough,
and all sums replace their operands: an update lives in its slot of three vectors ``a b c``. The
program holds the slots, one message ``m`` and a few elements, so that 256 labels of 16 bits fit the
thesis's scratchpad. Instructions of body ``n``, in which ``'`` marks those of update ``n + 1``::

    a = a + incoming                        t; the message that arrives
    a' = a' + b'                            q of the next update
    g = min(a)                              two halves of the vector in one instruction
    a' g = a' g + c' P                      p of the next update, and the plateau
    b = a + c_1                             the first shift: sums
    a[m_1 ..] = min(a[m_1 ..], b)           from the labels below, L - m_1 labels
    a = min(a, b[m_1 ..])                   from those above, L - m_1 labels
    ...                                     further shifts, three instructions each
    a = min(a, g)
    m = a - a[0]

``g`` is the element after ``a'``, in the place of ``b'``, which ``q'`` has read, and ``P`` the one
after ``c'``: an instruction of one element would cost two cycles, as the vector unit takes one in
two. The message that begins a line is loaded over ``c'`` when ``p'`` has read it, early enough for
``t``.

Without room for ``P`` in a slot, with variants and with two slots, the plateau has an instruction
of its own, after ``p'``. The message that begins a line is then loaded over ``b'``, which is not
needed after ``q'`` until the sums of its update. With two slots ``q'`` and ``p'`` come after the
shifts, as the next update is loaded meanwhile.

Variants (:mod:`microkernels.bp.variants.variant`): with weights, a body begins with the product of
the constants, a short vector, and the weight of the edge. With damping, the message that is
replaced is loaded over ``c`` at the beginning of the body, and the body ends with ::

    b = a - a[0]    a = c - b    a = a * damping    m = b + a
"""

from collections.abc import Iterator
from dataclasses import dataclass

from isa.table import MAX_VL
from isa.timing import VECTOR_LATENCY, WORD_BYTES
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import round_up

from ..problem import element_type
from ..record import LOADED_VECTORS, vector_stride
from ..variants.variant import USUAL, Variant
from .rhythm import MOST_SLOTS, beats_of
from .transform import Transform

__all__ = ["LEAST_BEATS", "WideInstruction", "WidePlan", "wide_order", "wide_plan"]

#: Beats of a vector from which on instructions need no others between them.
LEAST_BEATS = VECTOR_LATENCY + 1
_ALIGN = 16
_FEWEST_SLOTS = 2


@dataclass(frozen=True)
class WideInstruction:
    """An instruction of a body.

    Attributes:
        name: ``t``, ``q``, ``p``, ``least``, ``plateau``, ``bound``, ``m``, or with the number of
            a shift ``sum``, ``below``, ``above``; of variants ``scale``, ``n``, ``d``, ``f``.
        elements: vector length.
        shift: its number.
    """

    name: str
    elements: int
    shift: int = 0

    def beats(self, bits: int) -> int:
        """Cycles of the vector unit."""
        return -(-self.elements * bits // 8 // WORD_BYTES)


def wide_order(
    transform: Transform,
    labels: int,
    slots: int,
    variant: Variant = USUAL,
    *,
    joined: bool = False,
) -> Iterator[WideInstruction]:
    """The instructions of a body in their order, for a ring of so many slots; ``joined`` as of
    :class:`WidePlan`."""
    plateau = transform.plateau is not None
    early = slots > _FEWEST_SLOTS
    nexts = [WideInstruction(name, labels) for name in "qp"]
    if variant.weighted:
        yield WideInstruction("scale", 1 + len(transform.shifts))
    yield WideInstruction("t", labels)
    if joined:
        yield WideInstruction("q", labels)
        yield WideInstruction("least", -(-labels // 2))
        yield WideInstruction("p", labels + 1)
    elif transform.shifts and early:
        yield from nexts
    if not transform.shifts:
        if plateau:
            # Half a vector would come too early after t.
            yield WideInstruction("least", labels)
        yield from nexts
        if plateau:
            yield WideInstruction("plateau", 1)
    for number, shift in enumerate(transform.shifts):
        yield WideInstruction("sum", labels, number)
        if number == 0 and plateau and not joined:
            yield WideInstruction("least", -(-labels // 2))
        yield WideInstruction("below", labels - shift.labels, number)
        if number == 0 and plateau and not joined:
            yield WideInstruction("plateau", 1)
        yield WideInstruction("above", labels - shift.labels, number)
    if transform.shifts and not early:
        yield from nexts
    if plateau:
        yield WideInstruction("bound", labels)
    if variant.damped:
        for name in "ndf":
            yield WideInstruction(name, labels)
    yield WideInstruction("m", labels)


@dataclass(frozen=True)
class WidePlan:
    """Byte addresses in the scratchpad.

    Attributes:
        constants, constant_bytes: of the data that is loaded before the first run: ``P``, then the
            costs of the shifts, then with damping its sixteenths.
        scaled: of ``P`` and the costs times a weight; without weights that of the constants.
        least: of ``g``, unless it is in a slot. message: of ``m``.
        ring, slot, slots: as of :class:`microkernels.bp.schedule.ScratchpadPlan`.
        vector: bytes from a vector of a slot to the next.
        used: bytes of all.
        joined: ``g`` and ``P`` are in the slots.
        least_in_slot, plateau_in_slot: offsets of ``g'`` and ``P`` there.
    """

    constants: int
    constant_bytes: int
    scaled: int
    least: int
    message: int
    ring: int
    slot: int
    slots: int
    vector: int
    used: int
    joined: bool
    least_in_slot: int
    plateau_in_slot: int


def wide_plan(
    transform: Transform,
    labels: int,
    bits: int,
    scratchpad_bytes: int,
    most_slots: int = MOST_SLOTS,
    variant: Variant = USUAL,
) -> WidePlan:
    """The plan with as many slots as fit, up to ``most_slots``.

    Raises:
        KernelError: vectors shorter than :data:`LEAST_BEATS`, or two slots do not fit.
    """
    size = element_type(bits).itemsize
    if beats_of(labels, bits) < LEAST_BEATS:
        raise KernelError(f"{labels} labels of {bits} bits are too few for one line at a time")
    vector = vector_stride(labels + variant.tail, bits)
    costs = 1 + len(transform.shifts)
    constant_bytes = round_up(size * (costs + variant.damped), _ALIGN)
    least = constant_bytes + (round_up(size * costs, _ALIGN) if variant.weighted else 0)
    message = least + _ALIGN
    ring = message + round_up(vector, _ALIGN)
    slot = round_up(LOADED_VECTORS * vector, _ALIGN)
    slots = min(most_slots, (scratchpad_bytes - ring) // slot)
    if slots < _FEWEST_SLOTS:
        raise KernelError(
            f"{labels} labels of {bits} bits do not fit a scratchpad of {scratchpad_bytes} bytes "
            "by shifts"
        )
    return WidePlan(
        constants=0,
        constant_bytes=constant_bytes,
        scaled=constant_bytes if variant.weighted else 0,
        least=least,
        message=message,
        ring=ring,
        slot=slot,
        slots=slots,
        vector=vector,
        used=ring + slot * slots,
        joined=(
            variant.usual
            and transform.plateau is not None
            and bool(transform.shifts)
            and slots > _FEWEST_SLOTS
            and labels < MAX_VL
            and 2 * vector + (labels + 1) * size <= slot
        ),
        least_in_slot=labels * size,
        plateau_in_slot=2 * vector + labels * size,
    )
