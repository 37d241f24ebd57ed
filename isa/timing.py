"""Timing of the vector unit that programs may rely on.

The vector unit works through an instruction in *beats* of one 64-bit word per cycle and takes the
next instruction with no cycle between. It has no interlocks of its own: a program keeps a beat that
reads a scratchpad byte at least :data:`VECTOR_LATENCY` cycles after the beat that produces it, or
places a ``v.drain`` between. Generators of kernels use the functions here, the hardware is built
and tested against them.
"""

from .table import Instruction

__all__ = [
    "RANGE_BYTES",
    "VECTOR_HELD",
    "VECTOR_LATENCY",
    "WORD_BYTES",
    "beats",
    "row_beats",
]

#: Bytes that the vector datapath handles in a cycle.
WORD_BYTES = 8

#: Cycles from the beat that reads the operands of an element to the first beat that may read the
#: result of it from the scratchpad.
VECTOR_LATENCY = 12

#: Scratchpad ranges in transfer are compared in aligned units of this many bytes. A range in units
#: of its own never waits for a transfer beside it.
RANGE_BYTES = 16

#: Instructions that the vector unit holds: the one it works on and one that waits. When it takes
#: another, the instruction :data:`VECTOR_HELD` places before that one has read its last operands,
#: which is how a program knows when it may store a result or load over an operand.
VECTOR_HELD = 2


def row_beats(instruction: Instruction, vl: int) -> int:
    """Cycles for ``vl`` elements (one matrix row, or the whole of a ``v.v`` or ``v.s``)."""
    assert instruction.width is not None
    words = -(-vl * instruction.width.bytes // WORD_BYTES)
    return words * instruction.passes


def beats(instruction: Instruction, vl: int, mr: int) -> int:
    """Cycles that ``instruction`` takes in the vector unit with ``vl`` elements, ``mr`` rows."""
    rows = mr if instruction.reduction is not None else 1
    return rows * row_beats(instruction, vl)
