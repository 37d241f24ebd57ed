"""Timing of the vector unit that programs may rely on.

The vector unit works through an instruction in *beats* of one 64-bit word per cycle and takes the
next instruction without a gap. It has no interlocks of its own: a program keeps a beat that reads a
scratchpad byte at least :data:`VECTOR_LATENCY` cycles after the beat that produces it, or places a
``v.drain`` between. Kernel generators use these functions; the hardware is built and tested against
them.
"""

from .table import Instruction

#: Bytes that the vector datapath processes per cycle.
WORD_BYTES = 8

#: Cycles from the beat that reads an element's operands to the first beat that may read its result
#: from the scratchpad.
VECTOR_LATENCY = 12

#: Scratchpad ranges in transfer are compared in aligned units of this many bytes. A range in
#: separate units never waits for a neighbouring transfer.
RANGE_BYTES = 16

#: Instructions that the vector unit holds: the one it works on and one that waits. When it takes
#: another, the instruction :data:`VECTOR_HELD` places before that one has read its last operands,
#: so a program knows when it may store a result or load over an operand.
VECTOR_HELD = 2


def row_beats(instruction: Instruction, vl: int) -> int:
    """Cycles for ``vl`` elements (one matrix row, or a whole ``v.v`` or ``v.s``)."""
    assert instruction.width is not None
    words = -(-vl * instruction.width.bytes // WORD_BYTES)
    return words * instruction.passes


def beats(instruction: Instruction, vl: int, mr: int) -> int:
    """Vector-unit cycles of ``instruction`` with ``vl`` elements and ``mr`` rows."""
    rows = mr if instruction.reduction is not None else 1
    return rows * row_beats(instruction, vl)
