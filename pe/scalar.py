"""Scalar unit: 64-bit arithmetic, shifts, logic and branch conditions in one cycle."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import PeConfig
from isa.table import BranchOp, Opcode, ScalarOp, Unit

from .decode import issued

__all__ = ["REGISTER_WIDTH", "Scalar"]

#: Bits of a scalar register.
REGISTER_WIDTH = 64

_SHIFTS = (ScalarOp.SLL, ScalarOp.SRL, ScalarOp.SRA)


class Scalar(Component):
    """Combinational scalar unit with the operations of ``config`` (thesis Table 4.1).

    One adder serves addition, subtraction and the ordered branches, one rotator all shifts.

    Members:
        decoded: :func:`pe.decode.issued`, in.
        first, second: in, operands; the first two registers of a branch. ``second`` comes inverted
            where ``decoded.inverted`` is 1.
        result: out; value for register A of a scalar instruction that writes.
        taken: out; a branch instruction branches.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        rows = config.rows_of(Unit.SCALAR)
        self.operations = frozenset(row.scalar for row in rows if row.scalar is not None)
        if any(row.opcode in (Opcode.MOV, Opcode.MOV_IMM) for row in rows):
            # The decoder makes moves from an OR.
            self.operations |= {ScalarOp.OR}
        self.conditions = frozenset(row.branch for row in rows if row.branch is not None)
        super().__init__(
            {
                "decoded": In(issued(config)),
                "first": In(REGISTER_WIDTH),
                "second": In(REGISTER_WIDTH),
                "result": Out(REGISTER_WIDTH),
                "taken": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        first, second = self.first, self.second
        results: dict[ScalarOp, Value] = {}
        ordered = bool(self.conditions & {BranchOp.BLT, BranchOp.BGE})
        total = Signal(REGISTER_WIDTH)
        if ordered or self.operations & {ScalarOp.ADD, ScalarOp.SUB}:
            m.d.comb += total.eq(first + second + self.decoded.inverted)
            results[ScalarOp.ADD] = results[ScalarOp.SUB] = total
        results[ScalarOp.AND] = first & second
        results[ScalarOp.OR] = first | second
        difference = Signal(REGISTER_WIDTH)
        m.d.comb += difference.eq(first ^ second)
        results[ScalarOp.XOR] = difference
        shifts = self.operations & set(_SHIFTS)
        if shifts:
            shifted = self._shift(m, first, second)
            results.update(dict.fromkeys(_SHIFTS, shifted))
        with m.Switch(self.decoded.scalar):
            for op in sorted(self.operations):
                with m.Case(op):
                    m.d.comb += self.result.eq(results[op])

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
                with m.Case(condition):
                    m.d.comb += self.taken.eq(outcomes[condition])
        return m

    def _shift(self, m: Module, value: Signal, amount: Signal) -> Value:
        """``value`` shifted as the decoded operation asks: rotated right, then filled."""
        steps = (REGISTER_WIDTH - 1).bit_length()
        left = Signal()
        fill = Signal()
        if ScalarOp.SLL in self.operations:
            m.d.comb += left.eq(self.decoded.scalar == ScalarOp.SLL)
        if ScalarOp.SRA in self.operations:
            m.d.comb += fill.eq((self.decoded.scalar == ScalarOp.SRA) & value[-1])
        # To the left by n is to the right by 64 - n, which is 1 and all bits of n inverted.
        rotated: Value = Mux(left, value.rotate_right(1), value)
        for step in range(steps):
            turned = Signal(REGISTER_WIDTH, name=f"turned_{1 << step}")
            m.d.comb += turned.eq(
                Mux(amount[step] ^ left, rotated.rotate_right(1 << step), rotated)
            )
            rotated = turned
        reaches = Signal(REGISTER_WIDTH)
        keeps = Signal(REGISTER_WIDTH)
        m.d.comb += [
            reaches.eq(Cat(amount[:steps] <= place for place in range(REGISTER_WIDTH))),
            keeps.eq(Mux(left, reaches, Cat(*reversed(reaches)))),
        ]
        return (rotated & keeps) | (~keeps & fill.replicate(REGISTER_WIDTH))
