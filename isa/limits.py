"""Sizes of the instruction set."""

__all__ = [
    "ISA_VERSION",
    "MAX_FX",
    "MAX_MR",
    "MAX_VL",
    "MIN_REGISTER_WIDTH",
    "REGISTERS",
    "REGISTER_WIDTH",
]

#: Version of encoding and semantics; program files carry it.
ISA_VERSION = 1

#: Scalar registers r0..r63, 64 bits each; none is hard-wired.
REGISTERS = 64
#: Bits of a register, and the fewest that an engine may be built with. An engine with fewer than
#: 64 does what one with 64 does or stops with ``REGISTER_RANGE`` (:class:`isa.faults.FaultCause`).
REGISTER_WIDTH = 64
MIN_REGISTER_WIDTH = 24
#: Largest vector length (elements), number of matrix rows and fraction bits.
MAX_VL = 256
MAX_MR = 256
MAX_FX = 63
