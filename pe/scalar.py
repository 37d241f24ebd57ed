"""Scalar unit: 64-bit arithmetic, shifts, logic and branch conditions in one cycle."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import PeConfig
from isa.table import BranchOp, Opcode, ScalarOp, Unit

from .decode import decoded

__all__ = ["REGISTER_WIDTH", "Scalar"]

#: Bits of a scalar register.
REGISTER_WIDTH = 64

_SHIFTS = (ScalarOp.SLL, ScalarOp.SRL, ScalarOp.SRA)


class Scalar(Component):
    """Combinational scalar unit with the operations of ``config`` (thesis Table 4.1).

    One adder serves addition, subtraction and the ordered branches; one right shifter with
    reversal before and after serves all shifts.

    Members:
        decoded: :func:`pe.decode.decoded`, in.
        first, second: in, operands; the first two registers of a branch.
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
                "decoded": In(decoded(config)),
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
            subtract = Signal()
            # An ordered branch subtracts too; the encodings differ in bit 0 for add and sub alone.
            m.d.comb += [
                subtract.eq(self.decoded.branch | (self.decoded.scalar == ScalarOp.SUB)),
                total.eq(first + (second ^ subtract.replicate(REGISTER_WIDTH)) + subtract),
            ]
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
        signs = first[-1] ^ second[-1]
        m.d.comb += less.eq(Mux(signs, first[-1], total[-1]))
        equal = ~difference.any()
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
        """``value`` shifted as the decoded operation asks."""
        left = Signal()
        fill = Signal()
        forward = Signal(REGISTER_WIDTH)
        if ScalarOp.SLL in self.operations:
            m.d.comb += left.eq(self.decoded.scalar == ScalarOp.SLL)
        if ScalarOp.SRA in self.operations:
            m.d.comb += fill.eq((self.decoded.scalar == ScalarOp.SRA) & value[-1])
        m.d.comb += forward.eq(Mux(left, Cat(*reversed(value)), value))
        steps = (REGISTER_WIDTH - 1).bit_length()
        for step in range(steps):
            distance = 1 << step
            moved = Signal(REGISTER_WIDTH, name=f"shift_{distance}")
            m.d.comb += moved.eq(
                Mux(amount[step], Cat(forward[distance:], fill.replicate(distance)), forward)
            )
            forward = moved
        return Mux(left, Cat(*reversed(forward)), forward)
