"""Signatures between the units of a processing engine."""

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from isa.table import MAX_FX

from .capabilities import Capabilities
from .config import PeConfig

__all__ = ["ScratchpadReadPort", "ScratchpadWritePort", "vector_command"]


class ScratchpadReadPort(wiring.Signature):
    """Read port of the scratchpad, seen from the user.

    Members:
        enable: out; 1 reads the eight bytes from ``address`` on (any alignment; wraps at the end).
        address: out, byte address.
        data: in, byte ``address`` in bits 7:0; valid in the cycle after ``enable`` or one later for
            vector operands (:func:`pe.vector.stages.read_cycles`), and held as long after the next
            one. Of a store, byte ``address`` modulo 8 is in bits 7:0 of the byte of that number
            instead. A byte written in the very cycle in which it is read, or in the one before, is
            undefined.
    """

    def __init__(self, config: PeConfig) -> None:
        super().__init__({"enable": Out(1), "address": Out(config.scratchpad_bits), "data": In(64)})


class ScratchpadWritePort(wiring.Signature):
    """Write port of the scratchpad, seen from the user.

    Members (out): ``address`` (byte address, any alignment, wraps at the end), ``data`` (its first
    byte in bits 7:0) and ``strobe``, the bytes to write (0: none). Written at the end of the cycle,
    or of the next one.
    """

    def __init__(self, config: PeConfig) -> None:
        super().__init__(
            {"address": Out(config.scratchpad_bits), "data": Out(64), "strobe": Out(8)}
        )


def vector_command(config: PeConfig) -> data.StructLayout:
    """A vector instruction with its operands, as issued; all addresses lie in the scratchpad.

    Members:
        kind: operand form.
        vertical, reduction, width: encodings of :mod:`isa.table`; ``reduction`` is 0 without one.
        pairs: elements are pairs (:class:`isa.table.Instruction`).
        result, first, second: scratchpad byte addresses of A, B and C (C unused with ``nop``).
        vl: elements, 1..256. mr: rows, 1..256 (used with a reduction only). fx: 0..63.

    Fields are encoded as :class:`pe.capabilities.Capabilities` of the vector instructions says;
    those that none of them uses have no bits.
    """
    caps = Capabilities.of(config).vector
    address = config.scratchpad_bits if caps else 0
    return data.StructLayout(
        {
            "kind": caps.kind.shape,
            "vertical": caps.vertical.shape,
            "reduction": caps.reduction.shape,
            "pairs": caps.pairs.shape,
            "width": caps.width.shape,
            "result": address,
            "first": address,
            "second": address if caps.binary else 0,
            "vl": config.vl_bits if caps else 0,
            "mr": config.mr_bits if caps.reduced else 0,
            "fx": MAX_FX.bit_length() if caps.fractions else 0,
        }
    )
