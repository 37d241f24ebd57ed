"""Accesses of a simulated processing engine to its virtual workspace (:mod:`isa.workspace`)."""

from isa.faults import FaultCause
from isa.table import FIELD_A, Instruction
from isa.workspace import DESCRIPTOR_BYTES, Workspace, WorkspaceError

from .state import Operation, ProcessorFault, ProcessorState

__all__ = ["declare", "keep_out", "lowered"]


def lowered(state: ProcessorState, workspace: Workspace, far: int, length: int) -> bytes:
    """``length`` bytes of the window of ``workspace`` from ``far`` on, all of them in it.

    Raises:
        ProcessorFault: they lie in a part of the image that is outside the memory.
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
