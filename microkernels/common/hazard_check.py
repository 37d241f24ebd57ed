"""Finds hazards of the vector unit while a kernel is written.

:class:`HazardCheck` follows the text of a kernel from its beginning to its end. It knows the values
of registers that follow from constants, and treats all others as addresses far apart from each
other. A hazard of :class:`isa.hazards.HazardModel` on this path through the text is real if the
program can take the path. A hazard that depends on a register with an unknown value is not found
here: :class:`microkernels.common.schedule.ScheduleModel` checks every executed instruction.
"""

import re
from typing import NamedTuple

from isa.declared import Span
from isa.hazards import DOES, Hazard, HazardKind, HazardModel, own_operand
from isa.table import BY_KEY, INSTRUCTIONS, MAX_MR, MAX_VL, Instruction, Opcode, Role, Unit
from isa.vector_operation import VectorOperation

__all__ = ["HazardCheck", "WrittenLine"]

_MNEMONIC = re.compile(r"(\S+) \[(\d+)-bit\]")
#: Mnemonics of instructions that write their first operand, and of branches.
_WRITING = {"li"} | {
    row.mnemonic
    for row in INSTRUCTIONS
    if row.operands and row.operands[0].role is Role.DESTINATION
}
_BRANCHES = {
    row.mnemonic for row in INSTRUCTIONS if row.operands and row.operands[-1].role is Role.TARGET
}
_ENDS = ("jmp", "halt")
#: Assumed distance in bytes of addresses whose distance is unknown.
_APART = 1 << 48

#: Values of registers, by name; the value of a register without an entry is unknown.
_Values = dict[str, int]


class WrittenLine(NamedTuple):
    """An instruction as it is written.

    Attributes:
        mnemonic: with the width, such as ``v.v.add [16-bit]``.
        operands: names of registers and labels, and numbers.
        site: the call that wrote it: file and line.
    """

    mnemonic: str
    operands: tuple[str | int, ...]
    site: str

    @property
    def row(self) -> Instruction | None:
        """Row of the instruction table, if a width is written."""
        match = _MNEMONIC.fullmatch(self.mnemonic)
        return BY_KEY.get(f"{match[1]}[{match[2]}]") if match else None

    def __str__(self) -> str:
        return f"{self.mnemonic} {', '.join(map(str, self.operands))} ({self.site})"


class HazardCheck:
    """See the module's text. Call :meth:`before` and then :meth:`done` once for each line."""

    def __init__(self) -> None:
        self._model = HazardModel()
        self._issued: list[WrittenLine] = []
        self._constants: _Values = {}
        self._values: _Values = {}
        self._unknown = 0
        self._settings: dict[str, int | None] = {"set.vl": 1, "set.mr": 1}
        # Values of registers at the jumps to a label further down.
        self._arrivals: dict[str, list[_Values]] = {}
        self._reached = True

    def constant(self, name: str, value: int) -> None:
        """Register ``name`` holds ``value`` wherever it is read."""
        self._constants[name] = value

    def assume(self, name: str, base: str, offset: int) -> None:
        """Assume that register ``name`` holds ``base + offset``."""
        self._values[name] = self._value(base) + offset

    def label(self, name: str) -> None:
        """A label: a register stays known if it holds the same value on all paths that lead here
        from above. Without a jump from above none is known, as the jumps come from below then."""
        ways = self._arrivals.pop(name, [])
        if not self._reached:
            self._model = HazardModel()
            self._settings = dict.fromkeys(self._settings)
        elif ways:
            ways.append(self._values)
        common = ways[0].items() if ways else ()
        self._values = {
            key: value for key, value in common if all(way.get(key) == value for way in ways)
        }
        self._reached = True

    def before(self, line: WrittenLine) -> list[str]:
        """The hazards of ``line`` if it comes next, each as a message."""
        row = line.row
        hazards: list[Hazard] = []
        if row is not None and row.unit is Unit.VECTOR:
            operation = self._operation(row, line)
            if operation is not None:
                hazards = self._model.before_vector(operation) + own_operand(operation)
        elif row is not None and row.opcode in (Opcode.LD_SRAM, Opcode.ST_SRAM):
            first, second, count = map(self._value, line.operands)
            assert row.width is not None
            if 0 < count <= MAX_VL * MAX_MR:
                load = row.opcode == Opcode.LD_SRAM
                span = Span(first if load else second, count * row.width.bytes)
                check = self._model.before_load if load else self._model.before_store
                hazards = check(row, span)
        return [self._message(line, hazard) for hazard in hazards]

    def _message(self, line: WrittenLine, hazard: Hazard) -> str:
        if hazard.what is HazardKind.OWN_OPERAND:
            return f"{line} overwrites an operand of its own that it still has to read"
        does, did = DOES[hazard.what]
        return (
            f"{line} {does} what {self._issued[hazard.other]} {did}: distance {hazard.distance} "
            f"cycles, {hazard.needed} needed; v.drain must stand between"
        )

    def done(self, line: WrittenLine) -> None:
        """``line`` comes next."""
        mnemonic, operands, row = line.mnemonic, line.operands, line.row
        if row is not None and row.unit is Unit.VECTOR:
            operation = self._operation(row, line)
            if operation is None:
                self._model = HazardModel()
            else:
                self._model.issued(operation, len(self._issued))
                self._issued.append(line)
        elif mnemonic == "v.drain":
            self._model.drained()
        elif mnemonic in self._settings:
            value = self._value(operands[0])
            self._settings[mnemonic] = value if 0 < value <= max(MAX_VL, MAX_MR) else None
        elif mnemonic in _BRANCHES:
            self._arrivals.setdefault(str(operands[-1]), []).append(dict(self._values))
        elif mnemonic.partition(" ")[0] in _WRITING:
            self._write(mnemonic, *operands)
        if mnemonic in _ENDS:
            self._reached = False

    def _write(self, mnemonic: str, target: str | int, *sources: str | int) -> None:
        """An instruction that writes a register."""
        values = [self._value(source) for source in sources]
        is_number = [value < _APART // 2 for value in values]
        self._values.pop(str(target), None)
        if mnemonic in ("li", "mov"):
            self._values[str(target)] = values[0]
        elif mnemonic == "add" and any(is_number):
            self._values[str(target)] = sum(values)
        elif mnemonic == "sub" and is_number[1]:
            self._values[str(target)] = values[0] - values[1]

    def _value(self, operand: str | int) -> int:
        if isinstance(operand, int):
            return operand
        if operand in self._constants:
            return self._constants[operand]
        if operand not in self._values:
            self._unknown += _APART
            self._values[operand] = self._unknown
        return self._values[operand]

    def _operation(self, row: Instruction, line: WrittenLine) -> VectorOperation | None:
        """The vector instruction of ``line``; None: its length is unknown."""
        vl, mr = self._settings["set.vl"], self._settings["set.mr"]
        if row.reduction is None:
            mr = 1
        if vl is None or mr is None:
            return None
        result, first, second = (*map(self._value, line.operands), 0)[:3]
        return VectorOperation(row, result, first, second, vl, mr)
