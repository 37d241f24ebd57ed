"""Encodings of a decoded instruction's fields, in no more bits than its configuration needs."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from amaranth.hdl import Value
from amaranth.lib import enum

from hdl.packing import Packing
from hdl.simd import one_of
from isa.table import (
    REDUCTION,
    VERTICAL,
    WIDTH,
    BranchOp,
    Instruction,
    Opcode,
    ScalarOp,
    Unit,
)
from pe.config import PeConfig

__all__ = ["CLASSES", "CONTROL", "ControlOp", "Encodings", "IssueClass"]

_KIND_BITS = 2
#: Bits of ``kind`` of a load or store.
_STORE, _REGISTER = 0, 1


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


CONTROL = {
    Opcode.SET_VL: ControlOp.SET_VL,
    Opcode.SET_MR: ControlOp.SET_MR,
    Opcode.SET_FX: ControlOp.SET_FX,
    Opcode.DRAIN: ControlOp.DRAIN,
    Opcode.MEMFENCE: ControlOp.MEMFENCE,
    Opcode.HALT: ControlOp.HALT,
}
CLASSES = {
    Unit.SCALAR: IssueClass.SCALAR,
    Unit.VECTOR: IssueClass.VECTOR,
    Unit.LOAD_STORE: IssueClass.LOAD_STORE,
    Unit.ISSUE: IssueClass.CONTROL,
}


def _packing(values: Iterable[int | None], bits: int, whole: object = None) -> Packing:
    return Packing(frozenset(value for value in values if value is not None), bits, whole)


def _vertical(row: Instruction) -> int | None:
    # Logistic functions share the bits of the vertical operation.
    return row.vertical if row.logistic is None else row.logistic


def _scalar(row: Instruction) -> int | None:
    # The decoder makes moves from an OR.
    return ScalarOp.OR if row.opcode in (Opcode.MOV, Opcode.MOV_IMM) else row.scalar


@dataclass(frozen=True)
class Encodings:
    """How the fields of some instructions are kept between units.

    Attributes:
        rows: the instructions.
        unit: :class:`IssueClass`. control: :class:`ControlOp`.
        kind: low bits of the opcode: operand form of a vector instruction; of a load or store bit 0
            is set for a store and bit 1 for a register.
        width, vertical, reduction: encodings of :mod:`isa.table`; ``reduction`` is 0 without one.
        scalar: :class:`isa.table.ScalarOp`. condition: :class:`isa.table.BranchOp`.
    """

    rows: tuple[Instruction, ...]
    unit: Packing
    control: Packing
    kind: Packing
    width: Packing
    vertical: Packing
    reduction: Packing
    scalar: Packing
    condition: Packing

    @staticmethod
    @cache
    def of(config: PeConfig) -> "Encodings":
        """For all instructions of ``config``."""
        return Encodings.of_rows(config.rows)

    @staticmethod
    @cache
    def of_rows(rows: tuple[Instruction, ...]) -> "Encodings":
        """For the instructions ``rows``."""
        vectors = [row for row in rows if row.unit is Unit.VECTOR]
        passed_on = [row for row in rows if row.unit in (Unit.VECTOR, Unit.LOAD_STORE)]
        controls = [CONTROL[Opcode(row.opcode)] for row in rows if row.unit is Unit.ISSUE]
        return Encodings(
            rows=rows,
            unit=_packing((CLASSES[row.unit].value for row in rows), 2, IssueClass),
            control=_packing((control.value for control in controls), 3, ControlOp),
            kind=_packing((row.opcode & 3 for row in passed_on), _KIND_BITS),
            width=_packing((row.width for row in rows), WIDTH.bits),
            vertical=_packing((_vertical(row) for row in vectors), VERTICAL.bits),
            reduction=_packing((row.reduction or 0 for row in vectors), REDUCTION.bits),
            scalar=_packing((_scalar(row) for row in rows), max(ScalarOp).bit_length()),
            condition=_packing((row.branch for row in rows), max(BranchOp).bit_length()),
        )

    def is_unit(self, unit: Value, wanted: IssueClass) -> Value:
        """Whether the instruction goes to ``wanted``."""
        return self.unit.is_one_of(unit, [wanted.value])

    def is_form(self, kind: Value, opcode: Opcode) -> Value:
        """Of a vector instruction: whether it has the operand form of ``opcode``."""
        forms = {row.opcode & 3 for row in self.rows if row.unit is Unit.VECTOR}
        return one_of(self.kind.unpack(kind), [opcode & 3], forms)

    def is_store(self, kind: Value) -> Value:
        """Of a load or store: whether it is a store."""
        return self._kind_bit(kind, _STORE)

    def is_register(self, kind: Value) -> Value:
        """Of a load or store: whether it moves a register."""
        return self._kind_bit(kind, _REGISTER)

    def _kind_bit(self, kind: Value, bit: int) -> Value:
        found = {row.opcode >> bit & 1 for row in self.rows if row.unit is Unit.LOAD_STORE}
        # What differs only between vector instructions is no choice here.
        return one_of(self.kind.unpack(kind)[bit], [1], found)
