"""Rows of the instruction table: scalar unit."""

from isa.instruction import BranchOp, Format, Instruction, Opcode, Role, ScalarOp, Unit

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


def _operation_rows() -> list[Instruction]:
    """The rows of :class:`ScalarOp`: on registers, then with a constant."""
    rows = []
    for op in ScalarOp:
        text, expression, work = _SCALAR_TEXT[op]
        name = op.name.lower()
        rows.append(
            Instruction(
                key=name,
                mnemonic=name,
                opcode=Opcode.ALU_REG + op,
                format=Format.ABC,
                uses=(Role.DESTINATION, Role.SOURCE, Role.SOURCE),
                unit=Unit.SCALAR,
                work=work,
                scalar=op,
                summary=f"{text}.",
                semantics="A = " + expression.format(b="B", c="C"),
            )
        )
    for op in ScalarOp:
        text, expression, work = _SCALAR_TEXT[op]
        name = op.name.lower()
        role = Role.SHIFT if op in _SHIFTS else Role.IMMEDIATE
        rows.append(
            Instruction(
                key=f"{name}.imm",
                mnemonic=name,
                opcode=Opcode.ALU_IMM + op,
                format=Format.AB_IMM,
                uses=(Role.DESTINATION, Role.SOURCE, role),
                unit=Unit.SCALAR,
                work=work,
                scalar=op,
                summary=f"{text}, with a constant (sign-extended to 64 bits).",
                semantics="A = " + expression.format(b="B", c="imm14"),
            )
        )
    return rows


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
        *_operation_rows(),
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
