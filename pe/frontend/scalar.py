"""Scalar unit: arithmetic, shifts, logic and branch conditions in one cycle."""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import Out

from hdl.bundle import Bundle
from hdl.component import Component
from hdl.simd import one_of
from isa.table import REGISTER_WIDTH, BranchOp, ScalarOp, Unit
from pe.capabilities import Capabilities
from pe.config import PeConfig

from .decode import issued

_SHIFTS = (ScalarOp.SLL, ScalarOp.SRL, ScalarOp.SRA)
#: Bits of a shift's amount, whatever the width of the registers.
_SHIFT_STEPS = (REGISTER_WIDTH - 1).bit_length()


def at_issue(config: PeConfig) -> Bundle:
    """The instruction at issue and its operands.

    Members:
        decoded: :func:`pe.frontend.decode.issued`.
        first, second: the first two registers of a branch; ``second`` is inverted where
            ``decoded.inverted`` is 1.
    """
    return Bundle(decoded=issued(config), first=config.register_width, second=config.register_width)


class Scalar(Component):
    """Combinational scalar unit with the operations of ``config`` (thesis Table 4.1).

    One adder serves addition, subtraction and the ordered branches, one shifter all shifts.

    Members:
        decoded, first, second: :func:`at_issue`, in.
        result: out; value for register A of a scalar instruction that writes.
        overflow: out; the registers can't hold its result
            (:meth:`isa.table.ScalarOp.evaluate_narrow`); always 0 at full width.
        taken: out; a branch instruction branches.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        rows = config.rows_of(Unit.SCALAR)
        codes = Capabilities.of(config).scalar.values
        self.operations = frozenset(ScalarOp(code) for code in codes)
        self.conditions = frozenset(row.branch for row in rows if row.branch is not None)
        super().__init__(
            {
                **at_issue(config).inputs(),
                "result": Out(config.register_width),
                "overflow": Out(1),
                "taken": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        width = config.register_width
        caps = Capabilities.of(config)
        first, second = self.first, self.second
        results: dict[ScalarOp, Value] = {}
        overflows: dict[ScalarOp, Value] = {}
        ordered = bool(self.conditions & {BranchOp.BLT, BranchOp.BGE})
        total = Signal(width)
        if ordered or self.operations & {ScalarOp.ADD, ScalarOp.SUB}:
            m.d.comb += total.eq(first + second + self.decoded.inverted)
            results[ScalarOp.ADD] = results[ScalarOp.SUB] = total
            out_of_range = (first[-1] == second[-1]) & (first[-1] != total[-1])
            overflows[ScalarOp.ADD] = overflows[ScalarOp.SUB] = out_of_range
        results[ScalarOp.AND] = first & second
        results[ScalarOp.OR] = first | second
        difference = Signal(width)
        m.d.comb += difference.eq(first ^ second)
        results[ScalarOp.XOR] = difference
        shifts = self.operations & set(_SHIFTS)
        if shifts:
            code = caps.scalar.unpack(self.decoded.scalar)
            if config.narrow:
                left = one_of(code, [ScalarOp.SLL], shifts)
                shifted, lost = _narrow_shift(m, first, second, left=left)
                overflows[ScalarOp.SLL] = lost
                overflows[ScalarOp.SRL] = first[-1]
            else:
                fill = one_of(code, [ScalarOp.SRA], shifts) & first[-1]
                # Of shifts, those to the left alone come inverted.
                left = self.decoded.inverted if ScalarOp.SLL in shifts else Const(0, 1)
                shifted = _wide_shift(m, first, second, left=left, fill=fill)
            results.update(dict.fromkeys(_SHIFTS, shifted))
        with m.Switch(self.decoded.scalar):
            for op in sorted(self.operations):
                with m.Case(caps.scalar.code(op)):
                    m.d.comb += self.result.eq(results[op])
                    if config.narrow and op in overflows:
                        m.d.comb += self.overflow.eq(overflows[op])

        less = Signal()
        # The second operand of a branch is inverted.
        signs_differ = ~difference[-1]
        m.d.comb += less.eq(Mux(signs_differ, first[-1], total[-1]))
        equal = difference.all()
        outcomes: dict[BranchOp, Value | int] = {
            BranchOp.BLT: less,
            BranchOp.BGE: ~less,
            BranchOp.BEQ: equal,
            BranchOp.BNE: ~equal,
            BranchOp.JMP: 1,
        }
        with m.Switch(self.decoded.condition):
            for condition in sorted(self.conditions):
                with m.Case(caps.condition.code(condition)):
                    m.d.comb += self.taken.eq(outcomes[condition])
        return m


def _wide_shift(m: Module, value: Value, amount: Value, *, left: Value, fill: Value) -> Value:
    """``value``, as wide as the instruction set's registers, rotated and then filled.

    Parameters:
        amount: distance in its low bits; all bits inverted for shifts to the left. left: direction.
        fill: bit that is shifted in from the left.
    """
    width = len(value)
    # To the left by n is to the right by width - n, which is 1 and all bits of n inverted.
    rotated: Value = Mux(left, value.rotate_right(1), value)
    for step in range(_SHIFT_STEPS):
        turned = Signal(width, name=f"turned_{1 << step}")
        m.d.comb += turned.eq(Mux(amount[step], rotated.rotate_right(1 << step), rotated))
        rotated = turned
    turns = amount[:_SHIFT_STEPS]
    keeps = Signal(width)
    m.d.comb += keeps.eq(
        Cat(
            Mux(left, turns >= width - 1 - place, turns <= width - 1 - place)
            for place in range(width)
        )
    )
    return (rotated & keeps) | (~keeps & fill.replicate(width))


def _narrow_shift(m: Module, value: Value, amount: Value, *, left: Value) -> tuple[Value, Value]:
    """``value`` shifted to the left, or to the right with its sign, and whether to the left it lost
    bits that a signed value of its width needs.

    Parameters:
        value: of any width. amount: its low bits say by how much. left: direction.
    """
    width = len(value)
    fill = ~left & value[-1]
    shifted = Signal(width, name="unshifted")
    # Left is right with the bits in reverse order.
    m.d.comb += shifted.eq(Mux(left, Cat(*reversed(value)), value))
    lost: Value = Const(0, 1)
    for step in range(_SHIFT_STEPS):
        distance = min(1 << step, width)
        leaving = shifted[: distance + 1]
        # All bits shifted out must be copies of the sign; if none stays, they must be 0.
        fits = ~leaving.any() if distance == width else ~leaving.any() | leaving.all()
        lost = lost | (left & amount[step] & ~fits)
        moved = Signal(width, name=f"shifted_{1 << step}")
        m.d.comb += moved.eq(
            Mux(amount[step], Cat(shifted[distance:], fill.replicate(distance)), shifted)
        )
        shifted = moved
    return Mux(left, Cat(*reversed(shifted)), shifted), lost
