"""What an instruction is: encoding fields, operands and their roles, and a row of the table."""

from dataclasses import dataclass
from enum import Enum, IntEnum

from .operators import BranchOp, LogisticOp, ReductionOp, ScalarOp, VerticalOp, Width

__all__ = [
    "FIELD_A",
    "FIELD_B",
    "FIELD_C",
    "IMM14",
    "IMM20",
    "OPCODE",
    "REDUCTION",
    "VERTICAL",
    "WIDTH",
    "BitField",
    "Format",
    "Instruction",
    "Opcode",
    "Operand",
    "Origin",
    "Role",
    "Unit",
    "operands",
]


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
        optional: only engines whose configuration asks for it have it.
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
    optional: bool = False

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


def operands(fmt: Format, *roles: Role) -> tuple[Operand, ...]:
    """The operands of ``fmt`` with their ``roles``, in order."""
    assert len(roles) == len(fmt.value)
    return tuple(Operand(field, role) for field, role in zip(fmt.value, roles, strict=True))
