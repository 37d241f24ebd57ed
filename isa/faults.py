"""Fault causes that stop a processing engine, shared by simulator and hardware.

An instruction that meets several causes at once reports the one with the lowest number.
"""

from enum import IntEnum


class FaultCause(IntEnum):
    """Why a processing engine stopped; :attr:`NONE` while it has not faulted."""

    NONE = 0
    #: The program counter left the program (past its last word, or a branch to a negative word).
    PC_OUT_OF_PROGRAM = 1
    #: No instruction has this encoding, or this processing engine was built without it.
    ILLEGAL_INSTRUCTION = 2
    #: ``set.vl`` or ``set.mr`` outside 1..256 (an engine may have lower limits), or ``set.fx``
    #: outside 0..63.
    VECTOR_SETTING = 3
    #: A byte of an operand, result, load or store lies outside the scratchpad.
    SCRATCHPAD_RANGE = 4
    #: ``ld.reg`` or ``st.reg`` at an address that is not a multiple of its width, or ``set.ws`` at
    #: one that is not a multiple of 32.
    MISALIGNED = 5
    #: A byte of a load or store lies outside the memory.
    DRAM_RANGE = 6
    #: The memory answered a request with an error. Instructions that wait then are not performed.
    #: Reported with the program counter of the oldest instruction that waited when the answer
    #: arrived (of the last one issued, if none did), not of the one that made the request.
    MEMORY_ERROR = 7
    #: A processing engine with registers below 64 bits met a value that needs more of them: the
    #: result of a scalar instruction, the parameter of a launch (reported at word 0, before any
    #: instruction), or a value loaded by ``ld.reg`` (reported like :attr:`MEMORY_ERROR`). Nothing
    #: is written. ``srl`` of a negative value counts as one, and ``sll`` if bits are lost.
    REGISTER_RANGE = 8
    #: ``set.ws`` named a descriptor that declares no workspace (:mod:`isa.workspace`).
    WORKSPACE = 9
    #: A store to the window or the image of the declared workspace.
    STORE_TO_WORKSPACE = 10
    #: A load that is only partly in the window, or ``ld.reg`` from it.
    WORKSPACE_EDGE = 11
