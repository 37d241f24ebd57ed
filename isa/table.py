"""The instruction table: the one description of every instruction of the processing engine.

The encoder, assembler, disassembler, simulator, manual, trimming analysis and the hardware's
decoder are all derived from :data:`INSTRUCTIONS`. Source: thesis Table 4.1 and Figures 6.3, 6.5;
what is ours is marked :attr:`Origin.OURS`.

Encoding: 32 bits; opcode in 31:26, register fields A 25:20, B 19:14 and C 13:8, function bits 7:0
(width 1:0, vertical operation 4:2, reduction 6:5), a 14-bit signed immediate in 13:0 or a 20-bit
signed immediate in 19:0. Bits that an instruction does not use are 0. Opcode 0 is never legal, so
that cleared memory faults.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any

__all__ = [
    "BY_KEY",
    "FIELD_A",
    "FIELD_B",
    "FIELD_C",
    "IMM14",
    "IMM20",
    "INSTRUCTIONS",
    "ISA_VERSION",
    "MAX_FX",
    "MAX_MR",
    "MAX_VL",
    "OPCODE",
    "REDUCTION",
    "REGISTERS",
    "VERTICAL",
    "WIDTH",
    "BitField",
    "BranchOp",
    "Format",
    "Instruction",
    "LogisticOp",
    "Opcode",
    "Operand",
    "Origin",
    "ReductionOp",
    "Role",
    "ScalarOp",
    "Unit",
    "VerticalOp",
    "Width",
    "find",
]

#: Version of encoding and semantics; program files carry it.
ISA_VERSION = 1

#: Scalar registers r0..r63, 64 bits each; none is hard-wired.
REGISTERS = 64
#: Largest vector length (elements), number of matrix rows and fraction bits.
MAX_VL = 256
MAX_MR = 256
MAX_FX = 63


class Width(IntEnum):
    """Element width; the value is the encoding in bits 1:0."""

    W8 = 0
    W16 = 1
    W32 = 2
    W64 = 3

    @property
    def bits(self) -> int:
        """Bits in an element."""
        return 8 << self.value

    @property
    def bytes(self) -> int:
        """Bytes in an element."""
        return 1 << self.value


class VerticalOp(IntEnum):
    """Element-wise operation; the value is the encoding in bits 4:2."""

    NOP = 0
    ADD = 1
    SUB = 2
    MIN = 3
    MAX = 4
    MUL = 5


class ReductionOp(IntEnum):
    """Reduction over the elements of a row; the value is the encoding in bits 6:5 (0: none)."""

    ADD = 1
    MIN = 2
    MAX = 3


class LogisticOp(IntEnum):
    """Function of the optional logistic unit; the value is the encoding in bits 4:2."""

    SIGMOID = 0
    TANH = 1


_M64 = (1 << 64) - 1


def _signed64(value: int) -> int:
    value &= _M64
    return value - (1 << 64) if value >> 63 else value


class ScalarOp(IntEnum):
    """Scalar operation; the value is the low three bits of the opcode."""

    ADD = 0
    SUB = 1
    SLL = 2
    SRL = 3
    SRA = 4
    AND = 5
    OR = 6
    XOR = 7

    def evaluate(self, b: int, c: int) -> int:
        """Result for 64-bit patterns ``b`` and ``c`` (0 <= value < 2**64), as such a pattern.

        Arithmetic wraps; shifts use the low six bits of ``c``.
        """
        return _SCALAR[self](b, c) & _M64


_SCALAR: dict[ScalarOp, Callable[[int, int], int]] = {
    ScalarOp.ADD: lambda b, c: b + c,
    ScalarOp.SUB: lambda b, c: b - c,
    ScalarOp.SLL: lambda b, c: b << (c & 63),
    ScalarOp.SRL: lambda b, c: b >> (c & 63),
    ScalarOp.SRA: lambda b, c: _signed64(b) >> (c & 63),
    ScalarOp.AND: lambda b, c: b & c,
    ScalarOp.OR: lambda b, c: b | c,
    ScalarOp.XOR: lambda b, c: b ^ c,
}


class BranchOp(IntEnum):
    """Branch condition; the value is the low three bits of the opcode."""

    BLT = 0
    BGE = 1
    BEQ = 2
    BNE = 3
    JMP = 4

    def taken(self, a: int, b: int) -> bool:
        """Whether the branch is taken for 64-bit patterns ``a`` and ``b``, compared as signed."""
        return _BRANCH[self](_signed64(a), _signed64(b))


_BRANCH: dict[BranchOp, Callable[[int, int], bool]] = {
    BranchOp.BLT: lambda a, b: a < b,
    BranchOp.BGE: lambda a, b: a >= b,
    BranchOp.BEQ: lambda a, b: a == b,
    BranchOp.BNE: lambda a, b: a != b,
    BranchOp.JMP: lambda a, b: True,
}


class Unit(Enum):
    """Functional unit that executes an instruction."""

    SCALAR = "scalar"
    VECTOR = "vector"
    LOAD_STORE = "load-store"
    #: Executed by the issue stage itself.
    ISSUE = "issue"


class Origin(Enum):
    """Where an instruction comes from."""

    THESIS = "thesis Table 4.1"
    OURS = "ours"


class Opcode(IntEnum):
    """Bits 31:26."""

    ALU_IMM = 0x08  # ..0x0f: + ScalarOp
    ALU_REG = 0x10  # ..0x17: + ScalarOp
    MOV = 0x18
    MOV_IMM = 0x19
    BRANCH = 0x20  # ..0x24: + BranchOp
    MATRIX_VECTOR = 0x28
    VECTOR_VECTOR = 0x29
    VECTOR_SCALAR = 0x2A
    LOGISTIC = 0x2B
    SET_VL = 0x2C
    SET_MR = 0x2D
    SET_FX = 0x2E
    DRAIN = 0x2F
    LD_SRAM = 0x30
    ST_SRAM = 0x31
    LD_REG = 0x32
    ST_REG = 0x33
    MEMFENCE = 0x34
    HALT = 0x38


@dataclass(frozen=True)
class BitField:
    """Bits ``high:low`` of the instruction word."""

    name: str
    high: int
    low: int
    signed: bool = False

    @property
    def bits(self) -> int:
        """Width of the field in bits."""
        return self.high - self.low + 1

    @property
    def mask(self) -> int:
        """The field's bits within the instruction word."""
        return ((1 << self.bits) - 1) << self.low

    @property
    def range(self) -> range:
        """Values that the field can hold."""
        if self.signed:
            return range(-(1 << (self.bits - 1)), 1 << (self.bits - 1))
        return range(1 << self.bits)

    def insert(self, value: int) -> int:
        """``value`` placed in the field, other bits 0.

        Raises:
            ValueError: ``value`` does not fit.
        """
        if value not in self.range:
            raise ValueError(f"{value} does not fit {self.name}: {self.range[0]}..{self.range[-1]}")
        return (value << self.low) & self.mask

    def extract(self, word: int) -> int:
        """The field's value in ``word``."""
        value = (word & self.mask) >> self.low
        return value - (1 << self.bits) if self.signed and value >> (self.bits - 1) else value


OPCODE = BitField("opcode", 31, 26)
FIELD_A = BitField("a", 25, 20)
FIELD_B = BitField("b", 19, 14)
FIELD_C = BitField("c", 13, 8)
WIDTH = BitField("width", 1, 0)
VERTICAL = BitField("vertical", 4, 2)
REDUCTION = BitField("reduction", 6, 5)
IMM14 = BitField("imm14", 13, 0, signed=True)
IMM20 = BitField("imm20", 19, 0, signed=True)


class Role(Enum):
    """What an operand is for."""

    DESTINATION = "register written"
    SOURCE = "register read"
    RESULT_ADDRESS = "register holding the scratchpad address of the result"
    MATRIX_ADDRESS = "register holding the scratchpad address of the matrix"
    VECTOR_ADDRESS = "register holding the scratchpad address of a vector"
    ELEMENT_ADDRESS = "register holding the scratchpad address of one element"
    IGNORED = "register named but not read"
    SCRATCHPAD_ADDRESS = "register holding a scratchpad address"
    DRAM_ADDRESS = "register holding a DRAM address"
    LENGTH = "register holding a number of elements"
    IMMEDIATE = "constant"
    SHIFT = "constant from 0 to 63"
    TARGET = "label; stored as a distance in words from the branch itself"


@dataclass(frozen=True)
class Operand:
    """One operand: where it is encoded and what it means."""

    field: BitField
    role: Role

    @property
    def is_register(self) -> bool:
        """Whether the operand names a register."""
        return self.field in (FIELD_A, FIELD_B, FIELD_C)

    @property
    def reads(self) -> bool:
        """Whether the register named by the operand is read."""
        return self.is_register and self.role not in (Role.DESTINATION, Role.IGNORED)


class Format(Enum):
    """Operands in the order in which assembly names them, by their fields."""

    NONE = ()
    A = (FIELD_A,)
    AB = (FIELD_A, FIELD_B)
    ABC = (FIELD_A, FIELD_B, FIELD_C)
    AB_IMM = (FIELD_A, FIELD_B, IMM14)
    A_IMM = (FIELD_A, IMM20)
    IMM = (IMM14,)


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One instruction in one width and one operand form.

    Attributes:
        key: unique name, e.g. ``m.v.add.min[16]``, ``add``, ``add.imm``; configurations and the
            trimming analysis list instructions by it.
        mnemonic: as written in assembly, e.g. ``m.v.add.min``, ``add``.
        width: element width, written ``[16-bit]`` after the mnemonic; None: none is written.
        opcode: bits 31:26.
        function: bits 7:0 for formats without an immediate.
        format, operands: encoding and meaning of the operands, in assembly's order.
        unit: functional unit that executes it.
        vertical, reduction, logistic, scalar, branch: the operation, where the unit has a choice.
        summary: what it does, one sentence.
        semantics: pseudo-code. ``A``, ``B``, ``C`` are the registers named by the fields, ``S`` the
            scratchpad and ``M`` the memory (both byte addressed), ``w`` the width in bytes.
        origin: thesis or ours.
        built: False for an instruction that is declared but that no hardware implements yet.
    """

    key: str
    mnemonic: str
    opcode: int
    format: Format
    operands: tuple[Operand, ...]
    unit: Unit
    summary: str
    semantics: str
    width: Width | None = None
    function: int = 0
    vertical: VerticalOp | None = None
    reduction: ReductionOp | None = None
    logistic: LogisticOp | None = None
    scalar: ScalarOp | None = None
    branch: BranchOp | None = None
    origin: Origin = Origin.THESIS
    built: bool = True

    @property
    def match(self) -> int:
        """The instruction word with every operand field 0."""
        return OPCODE.insert(self.opcode) | self.function

    @property
    def mask(self) -> int:
        """Bits of the word that must equal :attr:`match` (operands are the other bits)."""
        free = 0
        for field in self.format.value:
            free |= field.mask
        return 0xFFFF_FFFF & ~free

    @property
    def writes(self) -> BitField | None:
        """Field that names the register written, if any."""
        for operand in self.operands:
            if operand.role is Role.DESTINATION:
                return operand.field
        return None

    @property
    def reads(self) -> tuple[BitField, ...]:
        """Fields that name registers read."""
        return tuple(operand.field for operand in self.operands if operand.reads)


def _operands(fmt: Format, *roles: Role) -> tuple[Operand, ...]:
    assert len(roles) == len(fmt.value)
    return tuple(Operand(field, role) for field, role in zip(fmt.value, roles, strict=True))


_SCALAR_TEXT = {
    ScalarOp.ADD: ("Add; wraps at 64 bits", "{b} + {c}"),
    ScalarOp.SUB: ("Subtract; wraps at 64 bits", "{b} - {c}"),
    ScalarOp.SLL: ("Shift left", "{b} << ({c} mod 64)"),
    ScalarOp.SRL: ("Shift right, filling with zeros", "unsigned({b}) >> ({c} mod 64)"),
    ScalarOp.SRA: ("Shift right, filling with the sign", "signed({b}) >> ({c} mod 64)"),
    ScalarOp.AND: ("Bitwise and", "{b} & {c}"),
    ScalarOp.OR: ("Bitwise or", "{b} | {c}"),
    ScalarOp.XOR: ("Bitwise exclusive or", "{b} ^ {c}"),
}
_SHIFTS = (ScalarOp.SLL, ScalarOp.SRL, ScalarOp.SRA)


def _scalar() -> list[Instruction]:
    rows = []
    for op in ScalarOp:
        text, expression = _SCALAR_TEXT[op]
        name = op.name.lower()
        rows.append(
            Instruction(
                key=name,
                mnemonic=name,
                opcode=Opcode.ALU_REG + op,
                format=Format.ABC,
                operands=_operands(Format.ABC, Role.DESTINATION, Role.SOURCE, Role.SOURCE),
                unit=Unit.SCALAR,
                scalar=op,
                summary=f"{text}.",
                semantics="A = " + expression.format(b="B", c="C"),
            )
        )
    for op in ScalarOp:
        text, expression = _SCALAR_TEXT[op]
        name = op.name.lower()
        role = Role.SHIFT if op in _SHIFTS else Role.IMMEDIATE
        rows.append(
            Instruction(
                key=f"{name}.imm",
                mnemonic=name,
                opcode=Opcode.ALU_IMM + op,
                format=Format.AB_IMM,
                operands=_operands(Format.AB_IMM, Role.DESTINATION, Role.SOURCE, role),
                unit=Unit.SCALAR,
                scalar=op,
                summary=f"{text}, with a constant (sign-extended to 64 bits).",
                semantics="A = " + expression.format(b="B", c="imm14"),
            )
        )
    rows.append(
        Instruction(
            key="mov",
            mnemonic="mov",
            opcode=Opcode.MOV,
            format=Format.AB,
            operands=_operands(Format.AB, Role.DESTINATION, Role.SOURCE),
            unit=Unit.SCALAR,
            summary="Copy a register.",
            semantics="A = B",
        )
    )
    rows.append(
        Instruction(
            key="mov.imm",
            mnemonic="mov.imm",
            opcode=Opcode.MOV_IMM,
            format=Format.A_IMM,
            operands=_operands(Format.A_IMM, Role.DESTINATION, Role.IMMEDIATE),
            unit=Unit.SCALAR,
            summary="Load a constant (sign-extended to 64 bits).",
            semantics="A = imm20",
        )
    )
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
                operands=_operands(Format.AB_IMM, Role.SOURCE, Role.SOURCE, Role.TARGET),
                unit=Unit.SCALAR,
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
            operands=_operands(Format.IMM, Role.TARGET),
            unit=Unit.SCALAR,
            branch=BranchOp.JMP,
            summary="Jump.",
            semantics="pc = pc + imm14",
        )
    )
    return rows


_VERTICAL_TEXT = {
    VerticalOp.NOP: ("{b}", "the matrix elements themselves"),
    VerticalOp.ADD: ("sat({b} + {c})", "saturated sums"),
    VerticalOp.SUB: ("sat({b} - {c})", "saturated differences"),
    VerticalOp.MIN: ("min({b}, {c})", "minima"),
    VerticalOp.MAX: ("max({b}, {c})", "maxima"),
    VerticalOp.MUL: ("{b} * {c}", "full-width products"),
}


def _vector() -> list[Instruction]:
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
                        operands=_operands(
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
                        operands=_operands(
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
        for width in Width:
            name = f"v.{logistic.name}".lower()
            rows.append(
                Instruction(
                    key=f"{name}[{width.bits}]",
                    mnemonic=name,
                    width=width,
                    opcode=Opcode.LOGISTIC,
                    function=WIDTH.insert(width) | VERTICAL.insert(logistic),
                    format=Format.AB,
                    operands=_operands(Format.AB, Role.RESULT_ADDRESS, Role.VECTOR_ADDRESS),
                    unit=Unit.VECTOR,
                    logistic=logistic,
                    summary=f"Element-wise {logistic.name.lower()}.",
                    semantics=f"for j < VL: S[A + j*w] = {logistic.name.lower()}(S[B + j*w])",
                    origin=Origin.OURS,
                    built=False,
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
                operands=_operands(Format.A, Role.SOURCE),
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


def _load_store() -> list[Instruction]:
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
                operands=_operands(
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
                operands=_operands(
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
                operands=_operands(Format.AB, Role.DESTINATION, Role.DRAM_ADDRESS),
                summary="Load one element from memory into a register, sign-extended.",
                semantics="A = signed(M[B .. B + w]); B a multiple of w",
                **common,
            ),
            Instruction(
                key=f"st.reg{suffix}",
                mnemonic="st.reg",
                opcode=Opcode.ST_REG,
                format=Format.AB,
                operands=_operands(Format.AB, Role.DRAM_ADDRESS, Role.SOURCE),
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


#: Every instruction, in the manual's order.
INSTRUCTIONS: tuple[Instruction, ...] = (*_scalar(), *_vector(), *_load_store())

#: The same by :attr:`Instruction.key`.
BY_KEY: dict[str, Instruction] = {row.key: row for row in INSTRUCTIONS}

_BY_MATCH: dict[int, dict[int, Instruction]] = {}
for _row in INSTRUCTIONS:
    _BY_MATCH.setdefault(_row.mask, {})[_row.match] = _row


def find(word: int) -> Instruction | None:
    """The instruction that ``word`` (32 bits) encodes, or None when it encodes none."""
    for mask, rows in _BY_MATCH.items():
        if (row := rows.get(word & mask)) is not None:
            return row
    return None
