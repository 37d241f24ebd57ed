"""Rows of the instruction table: vector unit and its settings."""

from isa.instruction import (
    REDUCTION,
    VERTICAL,
    WIDTH,
    Format,
    Instruction,
    Opcode,
    Origin,
    Role,
    Unit,
)
from isa.instruction import operands as make_operands
from isa.limits import MAX_FX, MAX_MR, MAX_VL
from isa.operators import LogisticOp, ReductionOp, VerticalOp, Width

__all__ = ["vector_rows"]


_VERTICAL_TEXT = {
    VerticalOp.NOP: ("{b}", "the matrix elements themselves"),
    VerticalOp.ADD: ("sat({b} + {c})", "saturated sums"),
    VerticalOp.SUB: ("sat({b} - {c})", "saturated differences"),
    VerticalOp.MIN: ("min({b}, {c})", "minima"),
    VerticalOp.MAX: ("max({b}, {c})", "maxima"),
    VerticalOp.MUL: ("{b} * {c}", "full-width products"),
}


def vector_rows() -> list[Instruction]:
    """The rows, in the manual's order."""
    rows = []
    for vertical in VerticalOp:
        for reduction in ReductionOp:
            for width in Width:
                name = f"m.v.{vertical.name}.{reduction.name}".lower()
                last = Role.IGNORED if vertical is VerticalOp.NOP else Role.VECTOR_ADDRESS
                element, words = _VERTICAL_TEXT[vertical]
                element = element.format(b="S[B + (i*VL + j)*w]", c="S[C + j*w]")
                reduce = {"ADD": "sum"}.get(reduction.name, reduction.name.lower())
                total = f"{reduce}(j < VL: {element})"
                if vertical is VerticalOp.MUL:
                    total = f"sat(round({total} >> FX))"
                elif reduction is ReductionOp.ADD:
                    total = f"sat({total})"
                rows.append(
                    Instruction(
                        key=f"{name}[{width.bits}]",
                        mnemonic=name,
                        width=width,
                        opcode=Opcode.MATRIX_VECTOR,
                        function=(
                            WIDTH.insert(width)
                            | VERTICAL.insert(vertical)
                            | REDUCTION.insert(reduction)
                        ),
                        format=Format.ABC,
                        operands=make_operands(
                            Format.ABC, Role.RESULT_ADDRESS, Role.MATRIX_ADDRESS, last
                        ),
                        unit=Unit.VECTOR,
                        vertical=vertical,
                        reduction=reduction,
                        summary=f"Reduce {words} of each matrix row and the vector by "
                        f"{reduction.name.lower()}."
                        if vertical is not VerticalOp.NOP
                        else f"Reduce each matrix row by {reduction.name.lower()}.",
                        semantics=f"for i < MR: S[A + i*w] = {total}",
                    )
                )
    for opcode, kind in ((Opcode.VECTOR_VECTOR, "v.v"), (Opcode.VECTOR_SCALAR, "v.s")):
        for vertical in VerticalOp:
            if vertical is VerticalOp.NOP:
                continue
            for width in Width:
                name = f"{kind}.{vertical.name}".lower()
                scalar = kind == "v.s"
                element, words = _VERTICAL_TEXT[vertical]
                element = element.format(b="S[B + j*w]", c="S[C]" if scalar else "S[C + j*w]")
                if vertical is VerticalOp.MUL:
                    element, words = f"sat(round({element} >> FX))", "rounded products"
                rows.append(
                    Instruction(
                        key=f"{name}[{width.bits}]",
                        mnemonic=name,
                        width=width,
                        opcode=opcode,
                        function=WIDTH.insert(width) | VERTICAL.insert(vertical),
                        format=Format.ABC,
                        operands=make_operands(
                            Format.ABC,
                            Role.RESULT_ADDRESS,
                            Role.VECTOR_ADDRESS,
                            Role.ELEMENT_ADDRESS if scalar else Role.VECTOR_ADDRESS,
                        ),
                        unit=Unit.VECTOR,
                        vertical=vertical,
                        summary=f"Element-wise {words} of a vector and "
                        f"{'one element' if scalar else 'a vector'}.",
                        semantics=f"for j < VL: S[A + j*w] = {element}",
                    )
                )
    for logistic in LogisticOp:
        name = f"v.{logistic.name}".lower()
        width = Width.W16
        rows.append(
            Instruction(
                key=f"{name}[{width.bits}]",
                mnemonic=name,
                width=width,
                opcode=Opcode.LOGISTIC,
                function=WIDTH.insert(width) | VERTICAL.insert(logistic),
                format=Format.AB,
                operands=make_operands(Format.AB, Role.RESULT_ADDRESS, Role.VECTOR_ADDRESS),
                unit=Unit.VECTOR,
                logistic=logistic,
                summary=f"Element-wise {logistic.name.lower()}.",
                semantics=f"for j < VL: S[A + j*w] = {logistic.name.lower()}(S[B + j*w])",
                origin=Origin.OURS,
                optional=True,
            )
        )
    for opcode, name, limit, origin in (
        (Opcode.SET_VL, "vl", f"1..{MAX_VL}", Origin.THESIS),
        (Opcode.SET_MR, "mr", f"1..{MAX_MR}", Origin.THESIS),
        (Opcode.SET_FX, "fx", f"0..{MAX_FX}", Origin.OURS),
    ):
        what = {"vl": "vector length in elements", "mr": "matrix rows", "fx": "fraction bits"}[name]
        rows.append(
            Instruction(
                key=f"set.{name}",
                mnemonic=f"set.{name}",
                opcode=opcode,
                format=Format.A,
                operands=make_operands(Format.A, Role.SOURCE),
                unit=Unit.ISSUE,
                summary=f"Set the {what} of the following vector instructions ({limit}).",
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
            operands=(),
            unit=Unit.ISSUE,
            summary="Wait until every earlier vector instruction has written its result.",
            semantics="wait",
        )
    )
    return rows
