"""Sizes of the instruction set."""

__all__ = ["ISA_VERSION", "MAX_FX", "MAX_MR", "MAX_VL", "REGISTERS"]

#: Version of encoding and semantics; program files carry it.
ISA_VERSION = 1

#: Scalar registers r0..r63, 64 bits each; none is hard-wired.
REGISTERS = 64
#: Largest vector length (elements), number of matrix rows and fraction bits.
MAX_VL = 256
MAX_MR = 256
MAX_FX = 63
