"""Generates the BP-M kernel with messages by shifts for many labels: one line at a time.

Vectors of :data:`LEAST_BEATS` beats or more hide the latency of results, so one line is enough, and
all sums replace their operands: an update lives in its slot of three vectors ``a b c``. The
scratchpad contains the slots, one message ``m`` and a few elements, so that 256 labels of 16 bits
fit the thesis's scratchpad. Instructions of body ``n``, where ``'`` marks those of update ``n +
1``::

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

``g`` is the element after ``a'``, instead of ``b'``, which ``q'`` has read, and ``P`` is the one
after ``c'``: an instruction of one element would cost two cycles, as the vector unit accepts one
every two cycles. The message that begins a line is loaded over ``c'`` once ``p'`` has read it,
early enough for ``t``.

Without room for ``P`` in a slot, with variants and with two slots, the plateau has a separate
instruction after ``p'``. The message that begins a line is then loaded over ``b'``, which is not
needed between ``q'`` and the sums of its update. With two slots ``q'`` and ``p'`` follow the
shifts, as the next update is loaded in the meantime.

Variants (:mod:`microkernels.bp.problem`): with weights, a body begins with the product of the
constants, a short vector, and the edge's weight. With damping, the replaced message is loaded over
``c`` at the start of the body, and the body ends with ::

    b = a - a[0]    a = c - b    a = a * damping    m = b + a

Loads, stores and line ends are those of :class:`microkernels.bp.frame.LaneFrame` with one lane. A
body stores the previous update's message after its third instruction: the first has at least as
many beats as a result takes, and two more show that it has ended. It loads a new update into the
previous update's slot after its second instruction, which shows that ``m`` has read that slot. The
plateau, if it is in the slots, is loaded once. If two instructions of a body are too close, as with
shifts of nearly all labels, a ``v.drain`` separates them.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isa.table import MAX_VL
from isa.timing import VECTOR_LATENCY, WORD_BYTES
from microkernels.common.builder import KernelBuilder
from microkernels.common.errors import KernelError
from microkernels.common.scratchpad_plan import ScratchpadPlan

from ..frame import LaneFrame
from ..plan import Shifts
from ..problem import USUAL, UpdateVariant, element_type
from ..record import LOADED_VECTORS, vector_stride
from .rhythm import beats_of
from .transform import Transform

#: Beats of a vector from which instructions need no others between them.
LEAST_BEATS = VECTOR_LATENCY + 1
_FEWEST_SLOTS = 2
#: Instructions of a body after which it stores and loads, and after q' or p' after which the last
#: vector it reads is free.
_STORED, _FREED, _READ = 2, 1, 2


class _Instruction(NamedTuple):
    """An instruction of a body.

    Attributes:
        name: ``t``, ``q``, ``p``, ``least``, ``plateau``, ``bound``, ``m``, or with a shift's
            number ``sum``, ``below``, ``above``; in variants ``scale``, ``n``, ``d``, ``f``.
        elements: vector length.
        shift: its number.
    """

    name: str
    elements: int
    shift: int = 0

    def beats(self, bits: int) -> int:
        """Cycles in the vector unit."""
        return -(-self.elements * bits // 8 // WORD_BYTES)


def _order(
    transform: Transform,
    labels: int,
    slots: int,
    variant: UpdateVariant = USUAL,
    *,
    joined: bool = False,
) -> Iterator[_Instruction]:
    """A body's instructions in order, for a ring of this many slots; ``joined``: the smallest total
    and the plateau are in the slots."""
    plateau = transform.plateau is not None
    early = slots > _FEWEST_SLOTS
    nexts = [_Instruction(name, labels) for name in "qp"]
    if variant.weighted:
        yield _Instruction("scale", 1 + len(transform.shifts))
    yield _Instruction("t", labels)
    if joined:
        yield _Instruction("q", labels)
        yield _Instruction("least", -(-labels // 2))
        yield _Instruction("p", labels + 1)
    elif transform.shifts and early:
        yield from nexts
    if not transform.shifts:
        if plateau:
            # With half a vector it would come too early after t.
            yield _Instruction("least", labels)
        yield from nexts
        if plateau:
            yield _Instruction("plateau", 1)
    for number, (far, _) in enumerate(transform.shifts):
        yield _Instruction("sum", labels, number)
        if number == 0 and plateau and not joined:
            yield _Instruction("least", -(-labels // 2))
        yield _Instruction("below", labels - far, number)
        if number == 0 and plateau and not joined:
            yield _Instruction("plateau", 1)
        yield _Instruction("above", labels - far, number)
    if transform.shifts and not early:
        yield from nexts
    if plateau:
        yield _Instruction("bound", labels)
    if variant.damped:
        for name in "ndf":
            yield _Instruction(name, labels)
    yield _Instruction("m", labels)


class WideShifts(Shifts):
    """The kernel for many labels: vectors of at least :data:`LEAST_BEATS` beats."""

    @cached_property
    def pad(self) -> ScratchpadPlan:
        """``constants``: the plateau, the shifts' costs, then the sixteenths of damping; with
        weights ``scaled``, the plateau and the costs times a weight; the smallest total ``g``,
        unless it is in a slot, and the message."""
        size, variant = self.size, self.variant
        if beats_of(self.labels, self.bits) < LEAST_BEATS:
            raise KernelError(
                f"{self.labels} labels of {self.bits} bits are too few for one line at a time"
            )
        vector = vector_stride(self.labels + variant.tail, self.bits)
        costs = 1 + len(self.transform.shifts)
        pad = ScratchpadPlan()
        pad.take("constants", size * (costs + variant.damped))
        pad.take("constants_end", 0)
        pad.take("scaled", size * costs if variant.weighted else 0)
        pad.take("g", size)
        pad.take("m0", vector)
        slots = pad.take_ring(LOADED_VECTORS, vector, room=self.scratchpad_bytes, most=self.slots)
        if slots < _FEWEST_SLOTS:
            raise self.no_room(" by shifts")
        return pad

    @property
    def joined(self) -> bool:
        """Whether the smallest total and the plateau are in the slots."""
        pad = self.pad
        return (
            self.variant.usual
            and self.transform.plateau is not None
            and bool(self.transform.shifts)
            and pad.slots > _FEWEST_SLOTS
            and self.labels < MAX_VL
            and 2 * pad.vector + (self.labels + 1) * self.size <= pad.slot
        )

    @property
    def order(self) -> list[_Instruction]:
        """A body's instructions."""
        slots, joined = self.pad.slots, self.joined
        return list(_order(self.transform, self.labels, slots, self.variant, joined=joined))

    @property
    def constants(self) -> NDArray[np.signedinteger]:
        """Plateau, costs of the shifts, sixteenths of damping."""
        elements = np.zeros(self.cost_bytes // self.size, element_type(self.bits))
        costs = [self.transform.plateau or 0, *(cost for _, cost in self.transform.shifts)]
        costs += [self.variant.damping] if self.variant.damped else []
        elements[: len(costs)] = costs
        return elements

    def builder(self, vault_bits: int | None) -> KernelBuilder:
        """As for :class:`.plan.Plan`."""
        return _WideKernel(self, vault_bits).build()

    @property
    def cycles(self) -> float:
        """Cycles of the body."""
        return sum(instruction.beats(self.bits) for instruction in self.order)


class _WideKernel(LaneFrame):
    """The BP-M kernel for many labels."""

    first_in_slot = False
    place_drains = True

    def __init__(self, shifts: WideShifts, vault_bits: int | None) -> None:
        pad, variant = shifts.pad, shifts.variant
        self.transform = shifts.transform
        self.order = shifts.order
        self.joined = shifts.joined
        self.constant_bytes = shifts.cost_bytes
        # A short first instruction shows that the previous one has ended, but not its results.
        self.stored = _STORED + variant.weighted
        super().__init__(shifts, vault_bits)
        #: Offsets in a slot of the next update's smallest total, and of the plateau.
        self.least_in_slot = self.labels * self.size
        self.plateau_in_slot = 2 * pad.vector + self.labels * self.size
        self.set_places()
        self.first = self.writer.register(
            "first", "address of the message that begins the next line"
        )
        self.first_next = self.writer.register("first_next", "bytes from there to the one after it")
        self.first_other = self.writer.register("first_other", "the same of every second line")
        self.writer.constant("g", pad["g"], "least total, and plateau")
        scaled = pad["scaled" if variant.weighted else "constants"]
        self.writer.constant("k", scaled, "plateau and costs of the shifts")
        if variant.weighted:
            self.writer.constant("K", pad["constants"], "the same before they are weighted")
        self._length = 0

    def load_costs(self) -> None:
        w, run = self.writer, self.run
        w.op("mov", self.y, self.constant_bytes // self.size)
        w.load("K" if self.variant.weighted else "k", run.costs, self.y)
        if self.joined:
            for n in range(self.pad.slots):
                w.op("add", self.x, self.slot(n), self.plateau_in_slot)
                w.load(self.x, run.costs, "one", note="plateau")

    def emit_streams(self) -> None:
        """Update all lines of a run."""
        w, run = self.writer, self.run
        self.spread()
        w.op("mov", self.first, run.first_message)
        w.op("mov", self.first_next, run.lane_pitch)
        w.op("mov", self.first_other, self.other_pitch)
        self.begin()
        self._vector(_Instruction("q", self.labels), -1)
        self._vector(_Instruction("p", self.labels), -1)
        w.op("v.drain")
        self._load_first(-1)
        w.note("First update.")
        self._load_old(0)
        self._body(0, begun=False)
        self.end_of_update("last")
        w.note("One body for each slot.")
        for n in range(1, self.pad.slots + 1):
            w.label(f"body_{n % self.pad.slots}")
            self._body(n)
            self.end_of_update("last")
        w.op("jmp", f"body_{1 % self.pad.slots}")
        w.emit_detours()
        self.store_last()

    def _load_first(self, n: int) -> None:
        """Load the message that begins the line of update ``n + 1``, over its ``b`` or ``c``."""
        w = self.writer
        place = (2 if self.joined else 1) * self.pad.vector
        w.op("add", self.incoming[0], self.slot(n + 1), place)
        w.load(self.incoming[0], self.first, "labels", note="message that begins the line")
        w.op("add", self.first, self.first, self.first_next)
        w.swap(self.first_next, self.first_other, self.x)

    def _body(self, n: int, *, begun: bool = True) -> None:
        w = self.writer
        w.note(f"Body {n % self.pad.slots}.")
        reader = "p" if self.joined else "q"
        read = _READ + next(
            i for i, instruction in enumerate(self.order) if instruction.name == reader
        )
        for number, instruction in enumerate(self.order):
            self._vector(instruction, n)
            if instruction.name == "t":
                w.op("mov", self.incoming[0], self.message[0])
            if begun and number == _FREED:
                self.load(n - 1 + self.pad.slots)
            if begun and number == self.stored:
                self.store(n - 1)
                self._load_old(n)
            if number == read:
                w.seldom("beq", self.left, "one", lambda: self._next_first(n))

    def _load_old(self, n: int) -> None:
        """Load, over ``c``, the message that update ``n`` replaces: it is where the next message is
        stored."""
        w = self.writer
        if self.variant.damped:
            w.op("add", self.x, self.slot(n), 2 * self.pad.vector)
            w.load(self.x, self.target[0], "labels", note="message that is replaced")

    def _next_first(self, n: int) -> None:
        w, run = self.writer, self.run
        with w.unless("beq", run.groups, "one"):
            self._load_first(n)

    def _vector(self, instruction: _Instruction, n: int) -> None:
        """Write an instruction of body ``n``."""
        w, vector = self.writer, self.pad.vector
        if instruction.elements != self._length:
            self._length = instruction.elements
            w.op("mov", self.x, instruction.elements)
            w.op("set.vl", self.x)
        a, later = self.slot(n), self.slot(n + 1)
        if instruction.name == "t":
            w.vector("v.v.add", a, a, self.incoming[0], note="t")
        elif instruction.name == "q":
            w.op("add", self.x, later, vector)
            w.vector("v.v.add", later, later, self.x, note="q'")
        elif instruction.name == "p":
            w.op("add", self.x, later, 2 * vector)
            w.vector("v.v.add", later, later, self.x, note="p'")
        elif instruction.name == "least":
            least = "g"
            if self.joined:
                least = self.y
                w.op("add", least, later, self.least_in_slot)
            if instruction.elements == self.labels:
                w.vector("m.v.nop.min", least, a, a, note="g = min(t)")
            else:
                w.op("add", self.x, a, (self.labels - instruction.elements) * self.size)
                w.vector("m.v.min.min", least, a, self.x, note="g = min(t)")
        elif instruction.name == "plateau":
            w.vector("v.s.add", "g", "g", "k", note="g = g + P")
        elif instruction.name == "bound":
            least = "g"
            if self.joined:
                least = self.y
                w.op("add", least, later, self.least_in_slot)
            w.vector("v.s.min", a, a, least, note="u = min(u, g)")
        elif instruction.name == "scale":
            w.op("add", self.x, a, self.weight)
            w.vector("v.s.mul", "k", "K", self.x, note="times the weight of the edge")
        elif instruction.name == "m" and not self.variant.damped:
            w.vector("v.s.sub", self.message[0], a, a, note="m")
        elif instruction.name in ("n", "d", "f", "m"):
            damping = self.pad["constants"] + (1 + len(self.transform.shifts)) * self.size
            self.damp(instruction.name, a, "m0", fresh=vector, replaced=2 * vector, damping=damping)
        else:
            self._shift(instruction, a)

    def _shift(self, instruction: _Instruction, a: str) -> None:
        w = self.writer
        far = self.transform.shifts[instruction.shift][0] * self.size
        w.op("add", self.x, a, self.pad.vector)
        if instruction.name == "sum":
            w.op("add", self.y, "k", (1 + instruction.shift) * self.size)
            w.vector("v.s.add", self.x, a, self.y, note="s = u + cost")
        elif instruction.name == "below":
            w.op("add", self.y, a, far)
            w.vector("v.v.min", self.y, self.y, self.x, note="from the labels below")
        else:
            w.op("add", self.x, self.x, far)
            w.vector("v.v.min", a, a, self.x, note="from the labels above")
