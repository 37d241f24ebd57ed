"""Element widths and the operations that instructions are made of, with their encodings."""

from collections.abc import Callable
from enum import IntEnum

__all__ = [
    "BranchOp",
    "ReductionOp",
    "ScalarOp",
    "VerticalOp",
    "Width",
    "fits",
]


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

    def evaluate_narrow(self, b: int, c: int, bits: int) -> int | None:
        """:meth:`evaluate` on an engine whose registers have ``bits`` bits, 24..63.

        Parameters:
            b, c: 64-bit patterns that ``bits`` bits sign-extended can hold.

        Returns:
            The same result, or None where the engine faults instead: where ``bits`` bits can't hold
            it, where ``srl`` has a negative ``b``, and where ``sll`` loses bits even if the
            remaining bits would fit.
        """
        if self is ScalarOp.SRL and b >> 63:
            return None
        exact = _signed64(b) << (c & 63) if self is ScalarOp.SLL else None
        result = self.evaluate(b, c)
        value = _signed64(result) if exact is None else exact
        return result if fits(value, bits) else None


def fits(value: int, bits: int) -> bool:
    """Whether ``bits`` bits in two's complement can hold ``value``."""
    return -(1 << (bits - 1)) <= value < 1 << (bits - 1)


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
