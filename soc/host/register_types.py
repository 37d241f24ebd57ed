"""Types that describe a register map."""

from dataclasses import dataclass
from enum import Enum

#: Bytes of a register.
WORD_BYTES = 4


class HostAccess(Enum):
    """Allowed accesses of a register; others are answered with SLVERR."""

    READ = "read"
    WRITE = "write"
    READ_WRITE = "read, write"
    #: Read; a bit written as 1 is cleared.
    CLEAR = "read, write 1 to clear"

    @property
    def readable(self) -> bool:
        """Whether reads are allowed."""
        return self is not HostAccess.WRITE

    @property
    def writable(self) -> bool:
        """Whether writes are allowed."""
        return self is not HostAccess.READ


@dataclass(frozen=True, kw_only=True)
class Field:
    """Bits of a register.

    Attributes:
        name: lower case.
        low: lowest bit.
        bits: number of bits.
        doc: one sentence.
        signed: whether the value is two's complement.
        values: meanings of values, if they have names.
    """

    name: str
    low: int
    bits: int
    doc: str
    signed: bool = False
    values: type[Enum] | None = None

    def extract(self, word: int) -> int:
        """The field's value in ``word`` (32 bits)."""
        value = word >> self.low & (1 << self.bits) - 1
        return value - (self.signed and value >> self.bits - 1) * (1 << self.bits)

    def place(self, value: int) -> int:
        """The bits of ``value`` at their place in the word."""
        return (value & (1 << self.bits) - 1) << self.low


@dataclass(frozen=True, kw_only=True)
class Register:
    """A register, or an array of equal ones.

    Attributes:
        name: upper case.
        offset: bytes from the start of the page.
        access: see :class:`HostAccess`.
        doc: description.
        fields: its parts, if it has any.
        reset: its value after reset; None where configuration or state define it.
        count: registers of the array; power of two.
        stride: bytes from one to the next.
    """

    name: str
    offset: int
    access: HostAccess
    doc: str
    fields: tuple[Field, ...] = ()
    reset: int | None = None
    count: int = 1
    stride: int = WORD_BYTES

    def field(self, name: str) -> Field:
        """The field called ``name``; it must exist."""
        return next(field for field in self.fields if field.name == name)

    @property
    def index_mask(self) -> int:
        """Bits of the byte offset that number the registers of the array."""
        return (self.count - 1) * self.stride

    @property
    def index_low(self) -> int:
        """Lowest of these bits."""
        return self.stride.bit_length() - 1

    @property
    def index_bits(self) -> int:
        """Number of these bits."""
        return (self.count - 1).bit_length()


@dataclass(frozen=True, kw_only=True)
class Block:
    """Pages of registers.

    Attributes:
        name: upper case.
        base: byte address of the first page.
        page_bytes: power of two.
        pages: number of pages, each of the same registers.
        doc: description of a page.
    """

    name: str
    base: int
    page_bytes: int
    pages: int
    doc: str
    registers: tuple[Register, ...]

    def register(self, name: str) -> Register:
        """The register called ``name``; it must exist."""
        return next(register for register in self.registers if register.name == name)

    def address(self, name: str, index: int = 0, *, page: int = 0) -> int:
        """Byte address of the register ``name`` (number ``index`` of an array) in ``page``."""
        register = self.register(name)
        assert 0 <= index < register.count
        assert 0 <= page < self.pages
        return self.base + page * self.page_bytes + register.offset + index * register.stride
