"""Rows of the instruction table: load-store unit, and the end of a program."""

from typing import Any

from isa.instruction import WIDTH, Format, Instruction, Opcode, Origin, Role, Unit
from isa.instruction import operands as make_operands
from isa.operators import Width

__all__ = ["load_store_rows"]


def load_store_rows() -> list[Instruction]:
    """The rows, in the manual's order."""
    rows = []
    for width in Width:
        common: dict[str, Any] = {
            "width": width,
            "function": WIDTH.insert(width),
            "unit": Unit.LOAD_STORE,
        }
        suffix = f"[{width.bits}]"
        rows += [
            Instruction(
                key=f"ld.sram{suffix}",
                mnemonic="ld.sram",
                opcode=Opcode.LD_SRAM,
                format=Format.ABC,
                operands=make_operands(
                    Format.ABC, Role.SCRATCHPAD_ADDRESS, Role.DRAM_ADDRESS, Role.LENGTH
                ),
                summary="Load elements from memory into the scratchpad.",
                semantics="S[A .. A + C*w] = M[B .. B + C*w]",
                **common,
            ),
            Instruction(
                key=f"st.sram{suffix}",
                mnemonic="st.sram",
                opcode=Opcode.ST_SRAM,
                format=Format.ABC,
                operands=make_operands(
                    Format.ABC, Role.DRAM_ADDRESS, Role.SCRATCHPAD_ADDRESS, Role.LENGTH
                ),
                summary="Store elements from the scratchpad into memory.",
                semantics="M[A .. A + C*w] = S[B .. B + C*w]",
                **common,
            ),
            Instruction(
                key=f"ld.reg{suffix}",
                mnemonic="ld.reg",
                opcode=Opcode.LD_REG,
                format=Format.AB,
                operands=make_operands(Format.AB, Role.DESTINATION, Role.DRAM_ADDRESS),
                summary="Load one element from memory into a register, sign-extended.",
                semantics="A = signed(M[B .. B + w]); B a multiple of w",
                **common,
            ),
            Instruction(
                key=f"st.reg{suffix}",
                mnemonic="st.reg",
                opcode=Opcode.ST_REG,
                format=Format.AB,
                operands=make_operands(Format.AB, Role.DRAM_ADDRESS, Role.SOURCE),
                summary="Store the low bits of a register into memory.",
                semantics="M[A .. A + w] = low w bytes of B; A a multiple of w",
                **common,
            ),
        ]
    rows.append(
        Instruction(
            key="memfence",
            mnemonic="memfence",
            opcode=Opcode.MEMFENCE,
            format=Format.NONE,
            operands=(),
            unit=Unit.ISSUE,
            summary="Wait until every earlier load and store is complete.",
            semantics="wait",
        )
    )
    rows.append(
        Instruction(
            key="halt",
            mnemonic="halt",
            opcode=Opcode.HALT,
            format=Format.NONE,
            operands=(),
            unit=Unit.ISSUE,
            summary="Complete every earlier instruction, then stop.",
            semantics="stop",
            origin=Origin.OURS,
        )
    )
    return rows
