"""Rows of the instruction table: scalar unit, vector unit and its settings, load-store unit."""

from typing import Any, NamedTuple

from isa.instruction import (
    PAIRS,
    REDUCTION,
    VERTICAL,
    WIDTH,
    Access,
    BranchOp,
    Extent,
    Format,
    Instruction,
    Opcode,
    Origin,
    ReductionOp,
    Role,
    ScalarOp,
    Unit,
    Use,
    VerticalOp,
    Width,
)
from isa.limits import MAX_FX, MAX_MR, MAX_VL
from isa.units import SPECIAL_UNITS

#: Summary, formula and kind of work.
_SCALAR_TEXT = {
    ScalarOp.ADD: ("Add; wraps at 64 bits", "{b} + {c}", "add"),
    ScalarOp.SUB: ("Subtract; wraps at 64 bits", "{b} - {c}", "add"),
    ScalarOp.SLL: ("Shift left", "{b} << ({c} mod 64)", "shift"),
    ScalarOp.SRL: ("Shift right, filling with zeros", "unsigned({b}) >> ({c} mod 64)", "shift"),
    ScalarOp.SRA: ("Shift right, filling with the sign", "signed({b}) >> ({c} mod 64)", "shift"),
    ScalarOp.AND: ("Bitwise and", "{b} & {c}", "logic"),
    ScalarOp.OR: ("Bitwise or", "{b} | {c}", "logic"),
    ScalarOp.XOR: ("Bitwise exclusive or", "{b} ^ {c}", "logic"),
}
_SHIFTS = (ScalarOp.SLL, ScalarOp.SRL, ScalarOp.SRA)


def _operation(op: ScalarOp, *, constant: bool) -> Instruction:
    """An operation on two registers, or on a register and a constant."""
    text, expression, work = _SCALAR_TEXT[op]
    name, last = op.name.lower(), Role.SOURCE
    if constant:
        text += ", with a constant (sign-extended to 64 bits)"
        last = Role.SHIFT if op in _SHIFTS else Role.IMMEDIATE
    return Instruction(
        key=f"{name}.imm" if constant else name,
        mnemonic=name,
        opcode=(Opcode.ALU_IMM if constant else Opcode.ALU_REG) + op,
        format=Format.AB_IMM if constant else Format.ABC,
        uses=(Role.DESTINATION, Role.SOURCE, last),
        unit=Unit.SCALAR,
        work=work,
        scalar=op,
        summary=f"{text}.",
        semantics="A = " + expression.format(b="B", c="imm14" if constant else "C"),
    )


def _branch_rows() -> list[Instruction]:
    rows = []
    for branch, condition in (
        (BranchOp.BLT, "signed(A) < signed(B)"),
        (BranchOp.BGE, "signed(A) >= signed(B)"),
        (BranchOp.BEQ, "A == B"),
        (BranchOp.BNE, "A != B"),
    ):
        name = branch.name.lower()
        rows.append(
            Instruction(
                key=name,
                mnemonic=name,
                opcode=Opcode.BRANCH + branch,
                format=Format.AB_IMM,
                uses=(Role.SOURCE, Role.SOURCE, Role.TARGET),
                unit=Unit.SCALAR,
                work="branch",
                branch=branch,
                summary=f"Branch if {condition}.",
                semantics=f"if {condition}: pc = pc + imm14",
            )
        )
    rows.append(
        Instruction(
            key="jmp",
            mnemonic="jmp",
            opcode=Opcode.BRANCH + BranchOp.JMP,
            format=Format.IMM,
            uses=(Role.TARGET,),
            unit=Unit.SCALAR,
            work="branch",
            branch=BranchOp.JMP,
            summary="Jump.",
            semantics="pc = pc + imm14",
        )
    )
    return rows


def scalar_rows() -> list[Instruction]:
    """The rows, in the manual's order."""
    return [
        *(_operation(op, constant=constant) for constant in (False, True) for op in ScalarOp),
        Instruction(
            key="mov",
            mnemonic="mov",
            opcode=Opcode.MOV,
            format=Format.AB,
            uses=(Role.DESTINATION, Role.SOURCE),
            unit=Unit.SCALAR,
            work="move",
            summary="Copy a register.",
            semantics="A = B",
        ),
        Instruction(
            key="mov.imm",
            mnemonic="mov.imm",
            opcode=Opcode.MOV_IMM,
            format=Format.A_IMM,
            uses=(Role.DESTINATION, Role.IMMEDIATE),
            unit=Unit.SCALAR,
            work="move",
            summary="Load a constant (sign-extended to 64 bits).",
            semantics="A = imm20",
        ),
        *_branch_rows(),
    ]


class _Vertical(NamedTuple):
    """An element-wise operation: its formula of elements ``{b}`` and ``{c}``, the results in words,
    the kind of work, and whether it is optional."""

    formula: str
    results: str
    work: str
    optional: bool = False


_VERTICAL = {
    VerticalOp.NOP: _Vertical("{b}", "the matrix elements themselves", "reduce"),
    VerticalOp.ADD: _Vertical("sat({b} + {c})", "saturated sums", "add"),
    VerticalOp.SUB: _Vertical("sat({b} - {c})", "saturated differences", "add"),
    VerticalOp.MIN: _Vertical("min({b}, {c})", "minima", "compare"),
    VerticalOp.MAX: _Vertical("max({b}, {c})", "maxima", "compare"),
    VerticalOp.MUL: _Vertical("{b} * {c}", "full-width products", "multiply"),
    VerticalOp.ABSDIFF: _Vertical(
        "sat(abs({b} - {c}))", "saturated absolute differences", "add", optional=True
    ),
    VerticalOp.AVG: _Vertical("({b} + {c} + 1) >> 1", "rounded averages", "add", optional=True),
}
#: Bits of the second operand that a multiplier processes per cycle.
_LIMB_BITS = 16


def _result(extent: Extent) -> Use:
    return (Role.RESULT_ADDRESS, extent, Access.WRITE)


_MATRIX = (Role.MATRIX_ADDRESS, Extent.MATRIX, Access.READ)
_VECTOR = (Role.VECTOR_ADDRESS, Extent.VECTOR, Access.READ)
_ELEMENT = (Role.ELEMENT_ADDRESS, Extent.ELEMENT, Access.READ)


def _of_vertical(vertical: VerticalOp, width: Width) -> dict[str, Any]:
    """Fields shared by all instructions with the operation ``vertical``."""
    product = vertical is VerticalOp.MUL
    return {
        "width": width,
        "unit": Unit.VECTOR,
        "vertical": vertical,
        "work": _VERTICAL[vertical].work,
        "optional": _VERTICAL[vertical].optional,
        "origin": Origin.OURS if _VERTICAL[vertical].optional else Origin.THESIS,
        "passes": max(1, width.bits // _LIMB_BITS) if product else 1,
        "fractions": product,
    }


def _matrix_vector(vertical: VerticalOp, reduction: ReductionOp, width: Width) -> Instruction:
    name = f"m.v.{vertical.name}.{reduction.name}".lower()
    unary = vertical is VerticalOp.NOP
    formula, results, *_ = _VERTICAL[vertical]
    element = formula.format(b="S[B + (i*VL + j)*w]", c="S[C + j*w]")
    reduce = {"ADD": "sum"}.get(reduction.name, reduction.name.lower())
    total = f"{reduce}(j < VL: {element})"
    if vertical is VerticalOp.MUL:
        total = f"sat(round({total} >> FX))"
    elif reduction is ReductionOp.ADD:
        total = f"sat({total})"
    reduced = "each matrix row" if unary else f"{results} of each matrix row and the vector"
    return Instruction(
        key=f"{name}[{width.bits}]",
        mnemonic=name,
        opcode=Opcode.MATRIX_VECTOR,
        function=WIDTH.insert(width) | VERTICAL.insert(vertical) | REDUCTION.insert(reduction),
        format=Format.ABC,
        uses=(_result(Extent.ROWS), _MATRIX, Role.IGNORED if unary else _VECTOR),
        reduction=reduction,
        summary=f"Reduce {reduced} by {reduction.name.lower()}.",
        semantics=f"for i < MR: S[A + i*w] = {total}",
        **_of_vertical(vertical, width),
    )


def _pairs() -> Instruction:
    """Products of bytes at the rate of bytes, with results of 16 bits."""
    vertical, reduction, width = VerticalOp.MUL, ReductionOp.ADD, Width.W16
    total = "sum(k < 2*VL: S8[B + 2*VL*i + k] * S8[C + k])"
    return Instruction(
        key=f"m.v.dot.add[{width.bits}]",
        mnemonic="m.v.dot.add",
        opcode=Opcode.MATRIX_VECTOR,
        function=WIDTH.insert(width)
        | VERTICAL.insert(vertical)
        | REDUCTION.insert(reduction)
        | PAIRS.insert(1),
        format=Format.ABC,
        uses=(_result(Extent.ROWS), _MATRIX, _VECTOR),
        reduction=reduction,
        pairs=True,
        summary="Reduce full-width products of the signed bytes of each matrix row and the vector, "
        "two per element, by add.",
        semantics=f"for i < MR: S[A + i*w] = sat(round({total} >> FX))",
        **_of_vertical(vertical, width) | {"optional": True, "origin": Origin.OURS},
    )


def _element_wise(opcode: Opcode, vertical: VerticalOp, width: Width) -> Instruction:
    scalar = opcode is Opcode.VECTOR_SCALAR
    name = f"{'v.s' if scalar else 'v.v'}.{vertical.name}".lower()
    element, results, *_ = _VERTICAL[vertical]
    element = element.format(b="S[B + j*w]", c="S[C]" if scalar else "S[C + j*w]")
    if vertical is VerticalOp.MUL:
        element, results = f"sat(round({element} >> FX))", "rounded products"
    return Instruction(
        key=f"{name}[{width.bits}]",
        mnemonic=name,
        opcode=opcode,
        function=WIDTH.insert(width) | VERTICAL.insert(vertical),
        format=Format.ABC,
        uses=(_result(Extent.VECTOR), _VECTOR, _ELEMENT if scalar else _VECTOR),
        summary=f"Element-wise {results} of a vector and "
        f"{'one element' if scalar else 'a vector'}.",
        semantics=f"for j < VL: S[A + j*w] = {element}",
        **_of_vertical(vertical, width),
    )


def vector_rows() -> list[Instruction]:
    """The rows, in the manual's order."""
    rows = [
        _matrix_vector(vertical, reduction, width)
        for vertical in VerticalOp
        for reduction in ReductionOp
        for width in Width
    ]
    rows.append(_pairs())
    rows += [
        _element_wise(opcode, vertical, width)
        for opcode in (Opcode.VECTOR_VECTOR, Opcode.VECTOR_SCALAR)
        for vertical in VerticalOp
        if vertical is not VerticalOp.NOP
        for width in Width
    ]
    rows += [row for unit in SPECIAL_UNITS.values() for row in unit.rows]
    for opcode, name, limit, origin in (
        (Opcode.SET_VL, "vl", f"1..{MAX_VL}", Origin.THESIS),
        (Opcode.SET_MR, "mr", f"1..{MAX_MR}", Origin.THESIS),
        (Opcode.SET_FX, "fx", f"0..{MAX_FX}", Origin.OURS),
    ):
        setting = {"vl": "vector length in elements", "mr": "matrix rows", "fx": "fraction bits"}[
            name
        ]
        rows.append(
            Instruction(
                key=f"set.{name}",
                mnemonic=f"set.{name}",
                opcode=opcode,
                format=Format.A,
                uses=(Role.SOURCE,),
                unit=Unit.ISSUE,
                work="set",
                summary=f"Set the {setting} of the following vector instructions ({limit}).",
                semantics=f"{name.upper()} = A; fault unless {limit}",
                origin=origin,
            )
        )
    rows.append(
        Instruction(
            key="v.drain",
            mnemonic="v.drain",
            opcode=Opcode.DRAIN,
            format=Format.NONE,
            unit=Unit.ISSUE,
            work="wait",
            summary="Wait until every earlier vector instruction has written its result.",
            semantics="wait",
        )
    )
    return rows


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
