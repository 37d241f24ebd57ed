"""Sizes of the instruction set, and bounds for smaller processing engines."""

from typing import TypedDict

#: Version of encoding and semantics; program files carry it.
ISA_VERSION = 1

#: Scalar registers r0..r63, 64 bits each; none is hard-wired.
REGISTERS = 64
#: Fewest registers of an engine: those that a launch sets, and a few more.
MIN_REGISTERS = 8
#: Bits of a register, and the fewest that an engine may have: those of an instruction's largest
#: constant. An engine with fewer than 64 behaves like one with 64, or stops with ``REGISTER_RANGE``
#: (:class:`isa.faults.FaultCause`).
REGISTER_WIDTH = 64
MIN_REGISTER_WIDTH = 20
#: Largest vector length (elements), number of matrix rows and fraction bits.
MAX_VL = 256
MAX_MR = 256
MAX_FX = 63
#: Smallest and largest scratchpad (bytes), program (words) and address of memory (bits) of an
#: engine.
SCRATCHPAD_BYTES = (64, 65536)
INSTRUCTION_WORDS = (16, 8192)
ADDRESS_BITS = (12, 40)
#: Scratchpad ranges in transfer are compared in aligned units of this many bytes. A range in
#: separate units never waits for a neighbouring transfer.
RANGE_BYTES = 16


class Limits(TypedDict):
    """Sizes of an engine: parameters of :class:`isa.iss.simulator.Simulator`, described there."""

    scratchpad_bytes: int
    scratchpad_alignment: int
    registers: int
    address_bits: int
    instructions: frozenset[str] | None
    instruction_words: int
    register_width: int
    max_vl: int
    max_mr: int
