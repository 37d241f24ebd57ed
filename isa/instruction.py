"""The data model of an instruction: element widths, operations and their encodings, fields,
operands and their roles, a row of the table, and its words.

The pseudo-instruction ``li`` loads any 64-bit constant with instructions on one register
(:func:`load_constant`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cached_property, lru_cache

from support.errors import VipError


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
    ABSDIFF = 6
    AVG = 7


class ReductionOp(IntEnum):
    """Reduction over the elements of a row; the value is the encoding in bits 6:5 (0: none)."""

    ADD = 1
    MIN = 2
    MAX = 3


_M64 = (1 << 64) - 1


def _signed(value: int, bits: int = 64) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


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

    def evaluate_narrow(self, b: int, c: int, bits: int) -> int | None:
        """:meth:`evaluate` on an engine whose registers have ``bits`` bits, 24..63.

        Parameters:
            b, c: 64-bit patterns that ``bits`` bits sign-extended can hold.

        Returns:
            The same result, or None where the engine faults instead: ``bits`` bits can't hold it,
            ``srl`` has a negative ``b``, or ``sll`` loses bits even if the remaining ones would
            fit.
        """
        if self is ScalarOp.SRL and b >> 63:
            return None
        exact = _signed(b) << (c & 63) if self is ScalarOp.SLL else None
        result = self.evaluate(b, c)
        value = _signed(result) if exact is None else exact
        return result if fits(value, bits) else None


def fits(value: int, bits: int) -> bool:
    """Whether ``bits`` bits in two's complement can hold ``value``."""
    return -(1 << (bits - 1)) <= value < 1 << (bits - 1)


_SCALAR: dict[ScalarOp, Callable[[int, int], int]] = {
    ScalarOp.ADD: lambda b, c: b + c,
    ScalarOp.SUB: lambda b, c: b - c,
    ScalarOp.SLL: lambda b, c: b << (c & 63),
    ScalarOp.SRL: lambda b, c: b >> (c & 63),
    ScalarOp.SRA: lambda b, c: _signed(b) >> (c & 63),
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
        return _BRANCH[self](_signed(a), _signed(b))


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
    """Origin of an instruction."""

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
    SPECIAL = 0x2B
    SET_VL = 0x2C
    SET_MR = 0x2D
    SET_FX = 0x2E
    DRAIN = 0x2F
    LD_SRAM = 0x30
    ST_SRAM = 0x31
    LD_REG = 0x32
    ST_REG = 0x33
    MEMFENCE = 0x34
    SET_WS = 0x35
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
PAIRS = BitField("pairs", 7, 7)
IMM14 = BitField("imm14", 13, 0, signed=True)
IMM20 = BitField("imm20", 19, 0, signed=True)


class Role(Enum):
    """Role of an operand."""

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


_SCRATCHPAD = (
    Role.RESULT_ADDRESS,
    Role.MATRIX_ADDRESS,
    Role.VECTOR_ADDRESS,
    Role.ELEMENT_ADDRESS,
    Role.SCRATCHPAD_ADDRESS,
)


class Extent(Enum):
    """Elements that lie at an address."""

    ELEMENT = "one"
    VECTOR = "VL"
    ROWS = "MR"
    MATRIX = "MR rows of VL"
    LENGTH = "as many as the operand of role LENGTH says"

    @property
    def by_vl(self) -> bool:
        """Whether VL multiplies the number of elements."""
        return self in (Extent.VECTOR, Extent.MATRIX)

    @property
    def by_mr(self) -> bool:
        """Whether MR multiplies the number of elements."""
        return self in (Extent.ROWS, Extent.MATRIX)

    def elements(self, vl: int, mr: int) -> int:
        """Number of elements under the settings ``vl`` and ``mr``; not of ``LENGTH``."""
        return (vl if self.by_vl else 1) * (mr if self.by_mr else 1)


class Access(Enum):
    """Access of an instruction to the elements at an address."""

    READ = "read"
    WRITE = "write"


#: What an operand is for; of an address also the elements there and how they are accessed.
Use = Role | tuple[Role, Extent, Access]


@dataclass(frozen=True)
class Operand:
    """One operand: its encoding field and what it is for."""

    field: BitField
    use: Use

    @property
    def role(self) -> Role:
        """Role of the operand."""
        return self.use if isinstance(self.use, Role) else self.use[0]

    @property
    def extent(self) -> Extent:
        """Elements at the address that the operand holds; only of an operand with an address."""
        assert not isinstance(self.use, Role)
        return self.use[1]

    @property
    def access(self) -> Access:
        """Access to these elements; likewise."""
        assert not isinstance(self.use, Role)
        return self.use[2]

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

    def __new__(cls, *fields: BitField) -> "Format":
        # Python 3.11.2 would give a member that is defined as () another value.
        member = object.__new__(cls)
        member._value_ = fields
        return member


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
        format, uses: encoding and meaning of the operands, in assembly's order.
        unit: functional unit that executes it.
        vertical, reduction, scalar, branch: the operation, where the unit has a choice.
        pairs: an element is a pair of signed numbers of half its width, the first in the low half,
            and a product of two elements is the sum of the products of their numbers.
        special: name of the special unit (:mod:`isa.units`) that computes it, or "".
        summary: what it does, one sentence.
        semantics: pseudo-code. ``A``, ``B``, ``C`` are the registers named by the fields, ``S`` the
            scratchpad and ``M`` the memory (both byte addressed), ``w`` the width in bytes.
        work: kind of work, one word, as in SCRATCH's Figure 4.
        passes: vector-unit cycles per 64-bit word of elements.
        fractions: whether FX matters.
        origin: thesis or ours.
        optional: only present in engines whose configuration asks for it.
    """

    key: str
    mnemonic: str
    opcode: int
    format: Format
    unit: Unit
    work: str
    summary: str
    semantics: str
    uses: tuple[Use, ...] = ()
    width: Width | None = None
    function: int = 0
    vertical: VerticalOp | None = None
    reduction: ReductionOp | None = None
    scalar: ScalarOp | None = None
    branch: BranchOp | None = None
    pairs: bool = False
    special: str = ""
    passes: int = 1
    fractions: bool = False
    origin: Origin = Origin.THESIS
    optional: bool = False

    @cached_property
    def operands(self) -> tuple[Operand, ...]:
        """The operands in assembly's order."""
        pairs = zip(self.format.value, self.uses, strict=True)
        return tuple(Operand(field, use) for field, use in pairs)

    @property
    def value_bits(self) -> int:
        """Bits of the exact value that the vector unit computes for an element, before reduction
        and shift."""
        assert self.width is not None
        if self.vertical is not VerticalOp.MUL:
            return self.width.bits
        return self.width.bits + 1 if self.pairs else 2 * self.width.bits

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

    @cached_property
    def scratchpad(self) -> tuple[Operand, ...]:
        """Operands that hold scratchpad addresses, in order; of a vector instruction the result,
        then the operands that it reads."""
        return tuple(operand for operand in self.operands if operand.role in _SCRATCHPAD)

    def by_role(self, word: int) -> dict[Role, int]:
        """Register numbers and constants in ``word``, an encoding of this instruction; of several
        operands with one role the last."""
        return {operand.role: operand.field.extract(word) for operand in self.operands}

    @cached_property
    def memory(self) -> Operand | None:
        """The operand that holds a DRAM address, if any."""
        return next(
            (operand for operand in self.operands if operand.role is Role.DRAM_ADDRESS), None
        )

    @property
    def loads(self) -> bool:
        """Whether it reads memory."""
        return self.memory is not None and self.memory.access is Access.READ


_SHIFT_AMOUNTS = range(64)


class EncodingError(VipError):
    """Operand values that an instruction can't encode; one line names the operand and its range."""


def operand_range(operand: Operand) -> range:
    """Values that assembly accepts for ``operand``: register numbers, constants or distances.

    An encoded shift amount may be any constant of its field, of which the machine uses the low six
    bits; assembly takes only 0 to 63.
    """
    return _SHIFT_AMOUNTS if operand.role is Role.SHIFT else operand.field.range


def encode(instruction: Instruction, values: Sequence[int]) -> int:
    """The 32-bit word of ``instruction`` with ``values`` as operands.

    Parameters:
        values: one for each of ``instruction.operands``, in that order: register numbers 0..63,
            signed constants, or the distance of a branch in words.

    Raises:
        EncodingError: a wrong number of values, or one that its field can't hold.
    """
    if len(values) != len(instruction.operands):
        raise EncodingError(
            f"{instruction.key} takes {len(instruction.operands)} operands, not {len(values)}"
        )
    word = instruction.match
    for number, (operand, value) in enumerate(zip(instruction.operands, values, strict=True), 1):
        allowed = operand.field.range
        if value not in allowed:
            raise EncodingError(
                f"operand {number} of {instruction.key} must be from {allowed[0]} to "
                f"{allowed[-1]}, not {value}"
            )
        word |= operand.field.insert(value)
    return word


#: The pseudo-instruction that loads any 64-bit constant.
LOAD_IMMEDIATE = "li"
#: Constants that ``li`` takes: every signed and every unsigned 64-bit number.
CONSTANT_RANGE = range(-(1 << 63), 1 << 64)

_BITS = 64
#: ``mov.imm`` gives 20 bits, each shift with an addition 14 more: 20 + 4 * 14 >= 64.
_MOST_STEPS = 9

_MOV, _ADD, _SLL, _SRL = "mov.imm", "add.imm", "sll.imm", "srl.imm"

_Steps = tuple[tuple[str, int], ...]


def _search(value: int, bits: int, steps: int) -> _Steps | None:
    """At most ``steps`` steps to a number whose low ``bits`` bits are those of ``value``.

    Bits above those are free, because a later shift drops them.
    """
    value = _signed(value, bits)
    if value in IMM20.range:
        return ((_MOV, value),)
    if steps < 2:
        return None
    zeros = (value & -value).bit_length() - 1
    if zeros:
        before = _search(value >> zeros, bits - zeros, steps - 1)
        if before is not None:
            return (*before, (_SLL, zeros))
    # Of all numbers that can be added, these two leave the most zeros in the low bits.
    half = -IMM14.range[0]
    for added in (value % half, value % half - half):
        if added:
            before = _search(value - added, bits, steps - 1)
            if before is not None:
                return (*before, (_ADD, added))
    # Just beyond what mov.imm can load.
    for nearest in (IMM20.range[0], IMM20.range[-1]):
        if value - nearest in IMM14.range:
            return ((_MOV, nearest), (_ADD, value - nearest))
    return None


@lru_cache(maxsize=1024)
def load_constant(value: int) -> tuple[tuple[str, int], ...]:
    """The 1 to 9 instructions that load ``value`` into a register.

    Parameters:
        value: one of :data:`CONSTANT_RANGE`.

    Returns:
        For each instruction its key (:attr:`Instruction.key`) and its constant. The
        register is the destination of each and, where it has one, its source.

    Raises:
        ValueError: ``value`` is outside :data:`CONSTANT_RANGE`.
    """
    if value not in CONSTANT_RANGE:
        raise ValueError(
            f"a 64-bit constant is from {CONSTANT_RANGE[0]} to {CONSTANT_RANGE[-1]}, not {value}"
        )
    pattern = value % (1 << _BITS)
    top_zeros = _BITS - pattern.bit_length()
    for steps in range(1, _MOST_STEPS + 1):
        sequence = _search(pattern, _BITS, steps)
        if sequence is not None:
            return sequence
        if 0 < top_zeros < _BITS:
            # Shifted to the top, with ones below: masks are -1 shifted right.
            shifted = (pattern << top_zeros) | ((1 << top_zeros) - 1)
            before = _search(shifted, _BITS, steps - 1)
            if before is not None:
                return (*before, (_SRL, top_zeros))
    raise AssertionError(f"no sequence for {value:#x}")
