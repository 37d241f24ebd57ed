"""Codes between the front end's stages: the unit an instruction goes to, and the instructions
executed by the issue stage itself."""

from amaranth.lib import enum

from isa.table import Opcode, Unit


class IssueClass(enum.Enum, shape=2):
    """Which unit an instruction goes to."""

    SCALAR = 0
    VECTOR = 1
    LOAD_STORE = 2
    CONTROL = 3


class ControlOp(enum.Enum, shape=3):
    """Instructions that the issue stage executes itself."""

    SET_VL = 0
    SET_MR = 1
    SET_FX = 2
    DRAIN = 3
    MEMFENCE = 4
    HALT = 5


#: ``set.ws``: not in :class:`ControlOp`, whose names appear in the Verilog of every engine.
DECLARE = 6
#: Codes of the instructions of the issue stage.
CONTROL: dict[Opcode, int] = {
    Opcode.SET_VL: ControlOp.SET_VL.value,
    Opcode.SET_MR: ControlOp.SET_MR.value,
    Opcode.SET_FX: ControlOp.SET_FX.value,
    Opcode.DRAIN: ControlOp.DRAIN.value,
    Opcode.MEMFENCE: ControlOp.MEMFENCE.value,
    Opcode.HALT: ControlOp.HALT.value,
    Opcode.SET_WS: DECLARE,
}
CLASSES = {
    Unit.SCALAR: IssueClass.SCALAR,
    Unit.VECTOR: IssueClass.VECTOR,
    Unit.LOAD_STORE: IssueClass.LOAD_STORE,
    Unit.ISSUE: IssueClass.CONTROL,
}
