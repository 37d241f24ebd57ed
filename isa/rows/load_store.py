"""Rows of the instruction table: load-store unit, and the end of a program."""

from typing import Any

from isa.instruction import (
    WIDTH,
    Access,
    Extent,
    Format,
    Instruction,
    Opcode,
    Origin,
    Role,
    Unit,
    Use,
    Width,
)


def _scratchpad(access: Access) -> Use:
    return (Role.SCRATCHPAD_ADDRESS, Extent.LENGTH, access)


def _memory(extent: Extent, access: Access) -> Use:
    return (Role.DRAM_ADDRESS, extent, access)


def _transfers(width: Width) -> list[Instruction]:
    """The rows of transfers of elements of ``width``."""
    common: dict[str, Any] = {
        "width": width,
        "function": WIDTH.insert(width),
        "unit": Unit.LOAD_STORE,
    }
    suffix = f"[{width.bits}]"
    return [
        Instruction(
            key=f"ld.sram{suffix}",
            mnemonic="ld.sram",
            opcode=Opcode.LD_SRAM,
            format=Format.ABC,
            uses=(_scratchpad(Access.WRITE), _memory(Extent.LENGTH, Access.READ), Role.LENGTH),
            work="load",
            summary="Load elements from memory into the scratchpad.",
            semantics="S[A .. A + C*w] = M[B .. B + C*w]",
            **common,
        ),
        Instruction(
            key=f"st.sram{suffix}",
            mnemonic="st.sram",
            opcode=Opcode.ST_SRAM,
            format=Format.ABC,
            uses=(_memory(Extent.LENGTH, Access.WRITE), _scratchpad(Access.READ), Role.LENGTH),
            work="store",
            summary="Store elements from the scratchpad into memory.",
            semantics="M[A .. A + C*w] = S[B .. B + C*w]",
            **common,
        ),
        Instruction(
            key=f"ld.reg{suffix}",
            mnemonic="ld.reg",
            opcode=Opcode.LD_REG,
            format=Format.AB,
            uses=(Role.DESTINATION, _memory(Extent.ELEMENT, Access.READ)),
            work="load",
            summary="Load one element from memory into a register, sign-extended.",
            semantics="A = signed(M[B .. B + w]); B a multiple of w",
            **common,
        ),
        Instruction(
            key=f"st.reg{suffix}",
            mnemonic="st.reg",
            opcode=Opcode.ST_REG,
            format=Format.AB,
            uses=(_memory(Extent.ELEMENT, Access.WRITE), Role.SOURCE),
            work="store",
            summary="Store the low bits of a register into memory.",
            semantics="M[A .. A + w] = low w bytes of B; A a multiple of w",
            **common,
        ),
    ]


def load_store_rows() -> list[Instruction]:
    """The rows, in the manual's order."""
    return [
        *(row for width in Width for row in _transfers(width)),
        Instruction(
            key="memfence",
            mnemonic="memfence",
            opcode=Opcode.MEMFENCE,
            format=Format.NONE,
            unit=Unit.ISSUE,
            work="wait",
            summary="Wait until every earlier load and store is complete.",
            semantics="wait",
        ),
        Instruction(
            key="set.ws",
            mnemonic="set.ws",
            opcode=Opcode.SET_WS,
            format=Format.A,
            uses=(Role.SOURCE,),
            unit=Unit.ISSUE,
            work="set",
            summary=(
                "Wait as memfence does, then declare the workspace whose 32-byte descriptor lies "
                "in memory; later ld.sram from its window read the image."
            ),
            semantics="workspace = M[A .. A + 32]; A a multiple of 32",
            origin=Origin.OURS,
            optional=True,
        ),
        Instruction(
            key="halt",
            mnemonic="halt",
            opcode=Opcode.HALT,
            format=Format.NONE,
            unit=Unit.ISSUE,
            work="end",
            summary="Complete every earlier instruction, then stop.",
            semantics="stop",
            origin=Origin.OURS,
        ),
    ]
