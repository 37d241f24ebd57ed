"""Decode: from an instruction word to the issue stage's control signals, by the ISA table."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hdl.component import Component, Probes
from hdl.simd import one_of
from isa.table import (
    FIELD_A,
    FIELD_B,
    FIELD_C,
    IMM14,
    IMM20,
    OPCODE,
    BitField,
    Format,
    Instruction,
    Opcode,
    ScalarOp,
    Unit,
)
from pe.capabilities import OPERATION, Capabilities
from pe.codes import CLASSES, CONTROL
from pe.config import PeConfig

from .instruction_word import WORD_BITS, whole_word, word_bits

_FUNCTION = BitField("function", 7, 0)


_OPERANDS = frozenset({"b", "c", "reads_a", "reads_b", "immediate", "zero", "value"})


def decoded(config: PeConfig) -> data.StructLayout:
    """A decoded instruction.

    Members:
        legal: the processing engine has this instruction; the rest is meaningful only then.
        unit: where it goes.
        a, b, c: register numbers. reads_a, reads_b, reads_c: those registers are read.
        writes: register ``a`` is written.
        scalar, condition, control, and the fields of :data:`pe.capabilities.OPERATION`: as encoded
            by :class:`pe.capabilities.Capabilities`, like ``unit``.
        immediate: the second operand of a scalar instruction is ``value``.
        zero: its first operand is 0, not register ``b``.
        inverted: its second operand is to be inverted: a branch or a subtraction, as it subtracts,
            or a shift to the left of registers of full width
            (:class:`pe.frontend.scalar.Scalar`).
        branch: it is a branch.
        value: immediate, sign-extended.
    """
    caps = Capabilities.of(config)
    return data.StructLayout(
        {
            "legal": 1,
            "unit": caps.unit.shape,
            "a": config.register_bits,
            "b": config.register_bits,
            "c": config.register_bits,
            "reads_a": 1,
            "reads_b": 1,
            "reads_c": 1,
            "writes": 1,
            # In the order in which the bits are in the Verilog.
            **dict(sorted(caps.operation_members.items(), reverse=True)),
            "scalar": caps.scalar.shape,
            "immediate": 1,
            "zero": 1,
            "inverted": 1,
            "branch": 1,
            "condition": caps.condition.shape,
            "control": caps.control.shape,
            "value": signed(IMM20.bits),
        }
    )


def issued(config: PeConfig) -> data.StructLayout:
    """:func:`decoded` without the members only needed up to operand fetch."""
    members = {name: field.shape for name, field in decoded(config)}
    return data.StructLayout({n: shape for n, shape in members.items() if n not in _OPERANDS})


def register_operands(config: PeConfig, word: Value) -> tuple[Value, Value, Value]:
    """Register numbers A, B and C of ``word``, used or not."""
    bits = config.register_bits
    a, b, c = (word[f.low : f.low + bits] for f in (FIELD_A, FIELD_B, FIELD_C))
    return a, b, c


def read_operands(config: PeConfig, word: Value) -> list[Value]:
    """Whether ``word``, if it is legal, may read its registers A, B and C."""
    possible = {row.opcode for row in config.rows}
    opcode = word[OPCODE.low : OPCODE.high + 1]
    return [one_of(opcode, opcodes, possible) for opcodes in operand_readers(config)]


def operand_readers(config: PeConfig) -> list[set[int]]:
    """Opcodes of the instructions that read register A, B and C."""
    return [
        {row.opcode for row in config.rows if _reads(row, field)}
        for field in (FIELD_A, FIELD_B, FIELD_C)
    ]


def _reads(row: Instruction, field: BitField) -> bool:
    return field in row.reads


class Decode(Component):
    """Combinational decoder for the instructions of ``config``.

    Members:
        word: in, instruction, as :mod:`pe.frontend.instruction_word` keeps it.
        out: :func:`decoded`, out.
    """

    probes = Probes("out")

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__({"word": In(word_bits(config)), "out": Out(decoded(config))})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        out = self.out
        word, legal = whole_word(config, self.word)
        caps = Capabilities.of(config)
        opcode = word[OPCODE.low : OPCODE.high + 1]
        a, b, c = register_operands(config, word)
        wide = Cat(opcode == row.opcode for row in config.rows if IMM20 in row.format.value).any()
        m.d.comb += [
            out.a.eq(a),
            out.b.eq(b),
            out.c.eq(c),
            *(
                out[name].eq(packing.pack(word[OPERATION[name].low : OPERATION[name].high + 1]))
                for name, packing in caps.operation.items()
            ),
            out.scalar.eq(caps.scalar.pack(opcode[:3])),
            out.condition.eq(caps.condition.pack(opcode[:3])),
            out.value.eq(
                Mux(
                    wide,
                    word[IMM20.low : IMM20.high + 1].as_signed(),
                    word[IMM14.low : IMM14.high + 1].as_signed(),
                )
            ),
        ]
        groups: dict[int, list[Instruction]] = {}
        for row in config.rows:
            groups.setdefault(row.opcode, []).append(row)
        with m.Switch(opcode):
            for code, rows in sorted(groups.items()):
                with m.Case(code):
                    self._group(m, rows)
                    m.d.comb += out.legal.eq(self._legal(m, rows, word) if legal is None else legal)
        return m

    def _group(self, m: Module, rows: list[Instruction]) -> None:
        """Outputs for the rows that share one opcode."""
        out = self.out
        caps = Capabilities.of(self.config)
        first = rows[0]
        m.d.comb += [
            out.unit.eq(caps.unit.code(CLASSES[first.unit].value)),
            out.reads_a.eq(_reads(first, FIELD_A)),
            out.reads_b.eq(_reads(first, FIELD_B)),
            out.writes.eq(first.writes is not None),
            out.branch.eq(first.branch is not None),
            out.inverted.eq(
                first.branch is not None
                or first.scalar is ScalarOp.SUB
                or (first.scalar is ScalarOp.SLL and not self.config.narrow)
            ),
        ]
        readers = [row for row in rows if _reads(row, FIELD_C)]
        if readers:
            reads_c = Signal(name=f"reads_c_{first.opcode}")
            m.d.comb += out.reads_c.eq(reads_c)
            verticals = {row.vertical or 0 for row in rows if row not in readers}
            if verticals:
                (ignoring,) = verticals
                ignores = caps.vertical.is_one_of(out.vertical, [ignoring])
                m.d.comb += reads_c.eq(~ignores)
            else:
                m.d.comb += reads_c.eq(1)
        if first.unit is Unit.SCALAR and first.branch is None:
            m.d.comb += out.immediate.eq(FIELD_C not in first.format.value)
        if first.opcode in (Opcode.MOV, Opcode.MOV_IMM):
            m.d.comb += out.scalar.eq(caps.scalar.code(ScalarOp.OR))
        if first.opcode == Opcode.MOV:
            m.d.comb += out.value.eq(0)
        if first.opcode == Opcode.MOV_IMM:
            m.d.comb += out.zero.eq(1)
        if first.unit is Unit.ISSUE:
            control = CONTROL[Opcode(first.opcode)]
            m.d.comb += out.control.eq(caps.control.code(control))

    def _legal(self, m: Module, rows: list[Instruction], word: Value) -> Value:
        """Whether the word is one of ``rows``, given that the opcode matches."""
        first = rows[0]
        legal = Signal(name=f"legal_{first.opcode}")
        fixed = first.mask & ~OPCODE.mask
        if first.format in (Format.AB_IMM, Format.A_IMM, Format.IMM):
            functions = Signal(init=1, name=f"function_{first.opcode}")
            m.d.comb += functions.eq(1)
        else:
            fixed &= ~_FUNCTION.mask
            functions = Signal(name=f"function_{first.opcode}")
            with m.Switch(word[_FUNCTION.low : _FUNCTION.high + 1]):
                with m.Case(*sorted(row.function for row in rows)):
                    m.d.comb += functions.eq(1)
        unused = [word[bit] for bit in range(WORD_BITS) if fixed >> bit & 1]
        clear = ~Cat(*unused).any()
        for operand in first.operands:
            if operand.is_register:
                # Registers beyond those that this processing engine has.
                low = operand.field.low + self.config.register_bits
                clear &= ~word[low : operand.field.high + 1].any()
        m.d.comb += legal.eq(functions & clear)
        return legal
