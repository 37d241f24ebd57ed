"""State of a simulated processing engine, read and changed by its instructions.

Loads and stores go through its virtual workspace (:mod:`isa.workspace`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from isa.faults import FaultCause
from isa.image import DramImage
from isa.table import FIELD_A, MAX_MR, MAX_VL, REGISTER_WIDTH, Instruction
from isa.workspace import DESCRIPTOR_BYTES, Workspace, WorkspaceError

#: Executes an instruction and returns the word address of the next one.
Operation = Callable[[], int]


class Halt(Exception):
    """The program has halted."""


class ProcessorFault(Exception):
    """The instruction stops the engine and has no effect."""

    def __init__(self, cause: FaultCause) -> None:
        super().__init__(cause)
        self.cause = cause


@dataclass
class ProcessorState:
    """State that instructions read and change.

    Attributes:
        registers: 64-bit patterns.
        scratchpad: its bytes.
        memory: the DRAM.
        memory_bytes: bytes of it that the engine reaches.
        address_space: bytes that addresses can name.
        vl, mr, fx: the vector settings. max_vl, max_mr: the largest that can be set.
        unaligned: bits that are 0 in addresses of scratchpad operands and transfers.
        register_width: bits that a register can hold.
        saturated: for each word of the program, how many values its executions have limited to the
            width of their element; None: not counted.
        workspace: the declared one, if any.
    """

    registers: list[int]
    scratchpad: memoryview
    memory: DramImage
    memory_bytes: int
    address_space: int
    vl: int
    mr: int
    fx: int
    max_vl: int = MAX_VL
    max_mr: int = MAX_MR
    unaligned: int = 0
    register_width: int = REGISTER_WIDTH
    saturated: list[int] | None = None
    workspace: Workspace | None = None


def lowered(state: ProcessorState, workspace: Workspace, far: int, length: int) -> bytes:
    """``length`` bytes of the window of ``workspace`` from ``far`` on, all within the window.

    Raises:
        ProcessorFault: they are in a part of the image outside the memory.
    """
    content = bytearray()
    for start, count in workspace.pieces(far, length):
        if start is None:
            content += bytes(count)
        elif start + count > state.memory_bytes:
            raise ProcessorFault(FaultCause.DRAM_RANGE)
        else:
            content += state.memory.read(start, count)
    return bytes(content)


def keep_out(workspace: Workspace, far: int, length: int, *, load: bool) -> None:
    """Check an access of ``length`` bytes from ``far`` on that is not a load within the window.

    Raises:
        ProcessorFault: the declared workspace forbids it.
    """
    if workspace.touches_window(far, length):
        raise ProcessorFault(FaultCause.WORKSPACE_EDGE if load else FaultCause.STORE_TO_WORKSPACE)
    if not load and workspace.touches_image(far, length):
        raise ProcessorFault(FaultCause.STORE_TO_WORKSPACE)


def declare(state: ProcessorState, row: Instruction, word: int, address: int) -> Operation:
    """The operation of ``set.ws``, ``word`` at word ``address`` of the program."""
    registers, following, a = state.registers, address + 1, FIELD_A.extract(word)

    def operation() -> int:
        start = registers[a]
        if start % DESCRIPTOR_BYTES:
            raise ProcessorFault(FaultCause.MISALIGNED)
        if start + DESCRIPTOR_BYTES > state.memory_bytes:
            raise ProcessorFault(FaultCause.DRAM_RANGE)
        try:
            workspace = Workspace.unpack(state.memory.read(start, DESCRIPTOR_BYTES))
            workspace.check(state.address_space, state.unaligned + 1)
        except WorkspaceError as error:
            raise ProcessorFault(FaultCause.WORKSPACE) from error
        state.workspace = workspace
        return following

    return operation
