"""Places of an instruction's operands: the registers with addresses, and the elements touched."""

from typing import NamedTuple

from isa.table import Instruction, Role

__all__ = ["RegisterAccess", "Span", "Transfer", "register_access", "transfer", "vector_spans"]


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


class RegisterAccess(NamedTuple):
    """Registers of ``ld.reg`` and ``st.reg``: that with the DRAM address, that which is loaded, and
    that which is stored; one of these two is None."""

    far: int
    loaded: int | None
    stored: int | None


def vector_spans(row: Instruction, word: int) -> tuple[Span, ...]:
    """Scratchpad operands and result of the vector instruction ``word``, which encodes ``row``."""
    return tuple(
        Span(each.field.extract(word), each.extent.by_vl, each.extent.by_mr)
        for each in row.scratchpad
    )


def _registers(row: Instruction, word: int) -> dict[Role, int]:
    return {each.role: each.field.extract(word) for each in row.operands}


def transfer(row: Instruction, word: int) -> Transfer:
    """Registers of ``word``, which encodes ``row``, a load or store of the scratchpad."""
    named = _registers(row, word)
    return Transfer(named[Role.SCRATCHPAD_ADDRESS], named[Role.DRAM_ADDRESS], named[Role.LENGTH])


def register_access(row: Instruction, word: int) -> RegisterAccess:
    """Registers of ``word``, which encodes ``row``, a load or store of a register."""
    named = _registers(row, word)
    return RegisterAccess(
        named[Role.DRAM_ADDRESS], named.get(Role.DESTINATION), named.get(Role.SOURCE)
    )
