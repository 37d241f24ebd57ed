"""Signatures between the units of a processing engine."""

from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from hdl.config import PeConfig
from isa.table import MAX_FX, ReductionOp, VerticalOp, Width

__all__ = ["ScratchpadReadPort", "ScratchpadWritePort", "VectorKind", "vector_command"]


class ScratchpadReadPort(wiring.Signature):
    """Read port of the scratchpad, seen from the user.

    Members:
        enable: out; 1 reads the eight bytes from ``address`` on (any alignment; wraps at the end).
        address: out, byte address.
        data: in, byte ``address`` in bits 7:0; valid in the cycle after ``enable`` and held until
            the cycle after the next one. A byte written in the very cycle in which it is read comes
            out old or new: undefined.
    """

    def __init__(self, config: PeConfig) -> None:
        super().__init__({"enable": Out(1), "address": Out(config.scratchpad_bits), "data": In(64)})


class ScratchpadWritePort(wiring.Signature):
    """Write port of the scratchpad, seen from the user.

    Members (out): ``address`` (byte address, any alignment, wraps at the end), ``data`` (its first
    byte in bits 7:0) and ``strobe``, the bytes to write (0: none). Written at the end of the cycle.
    """

    def __init__(self, config: PeConfig) -> None:
        super().__init__(
            {"address": Out(config.scratchpad_bits), "data": Out(64), "strobe": Out(8)}
        )


class VectorKind(enum.Enum, shape=2):
    """Operand form; the low bits of the opcode."""

    MATRIX_VECTOR = 0
    VECTOR_VECTOR = 1
    VECTOR_SCALAR = 2
    LOGISTIC = 3


def vector_command(config: PeConfig) -> data.StructLayout:
    """A vector instruction with its operands, as issued; all addresses lie in the scratchpad.

    Members:
        kind: operand form.
        vertical, reduction, width: encodings of :mod:`isa.table`; ``reduction`` is 0 without one.
        result, first, second: scratchpad byte addresses of A, B and C (C unused with ``nop``).
        vl: elements, 1..256. mr: rows, 1..256 (used with a reduction only). fx: 0..63.
    """
    return data.StructLayout(
        {
            "kind": VectorKind,
            "vertical": max(VerticalOp).bit_length(),
            "reduction": max(ReductionOp).bit_length(),
            "width": max(Width).bit_length(),
            "result": config.scratchpad_bits,
            "first": config.scratchpad_bits,
            "second": config.scratchpad_bits,
            "vl": config.length_bits,
            "mr": config.length_bits,
            "fx": MAX_FX.bit_length(),
        }
    )
