"""Where an instruction's operands lie: the registers with addresses, and how much is touched."""

from typing import NamedTuple

from isa.table import FIELD_A, FIELD_B, FIELD_C, Instruction, Opcode, VerticalOp

__all__ = ["Span", "Transfer", "register_access", "transfer", "vector_spans"]


class Span(NamedTuple):
    """An operand or result of a vector instruction in the scratchpad.

    Attributes:
        register: number of the register with its address.
        vl, mr: whether it has VL elements, and of these MR rows; without either it is one element.
    """

    register: int
    vl: bool
    mr: bool


class Transfer(NamedTuple):
    """Registers of ``ld.sram`` and ``st.sram``: scratchpad address, DRAM address, elements."""

    near: int
    far: int
    length: int


def vector_spans(row: Instruction, word: int) -> tuple[Span, ...]:
    """What the vector instruction ``word``, which encodes ``row``, touches in the scratchpad."""
    a, b, c = FIELD_A.extract(word), FIELD_B.extract(word), FIELD_C.extract(word)
    matrix = row.reduction is not None
    spans = [Span(a, vl=not matrix, mr=matrix), Span(b, vl=True, mr=matrix)]
    ignored = matrix and row.vertical is VerticalOp.NOP
    if row.logistic is None and not ignored:
        spans.append(Span(c, vl=row.opcode != Opcode.VECTOR_SCALAR, mr=False))
    return tuple(spans)


def transfer(row: Instruction, word: int) -> Transfer:
    """Registers of ``word``, which encodes ``row``, a load or store of the scratchpad."""
    a, b, c = FIELD_A.extract(word), FIELD_B.extract(word), FIELD_C.extract(word)
    return Transfer(a, b, c) if row.opcode == Opcode.LD_SRAM else Transfer(b, a, c)


def register_access(row: Instruction, word: int) -> tuple[int, int | None]:
    """Registers of ``ld.reg`` and ``st.reg``: that with the DRAM address, and that which is loaded
    (None: stored)."""
    a, b = FIELD_A.extract(word), FIELD_B.extract(word)
    return (b, a) if row.opcode == Opcode.LD_REG else (a, None)
