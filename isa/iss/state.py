"""State of a simulated processing engine, which operations on it read and change."""

from collections.abc import Callable
from dataclasses import dataclass

from isa.faults import FaultCause
from isa.image import DramImage
from isa.table import MAX_MR, MAX_VL, REGISTER_WIDTH
from isa.workspace import Workspace

__all__ = ["Halt", "Operation", "ProcessorFault", "ProcessorState"]

#: Executes an instruction and returns the word address of the next one.
Operation = Callable[[], int]


class Halt(Exception):
    """The program has come to its end."""


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
        memory_bytes: how much of it can be reached. address_space: how much addresses can name.
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
