"""Finds vector unit hazards while a kernel is being written.

:class:`HazardCheck` follows a kernel's text from start to end. It knows the values of registers
that depend only on constants, and assumes that all others are addresses far apart. A hazard
reported by :class:`isa.timing.HazardModel` on this path is real if the program can take the path.
Hazards that depend on registers with unknown values are missed;
:class:`isa.hazards.HazardLog` checks every executed instruction.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from isa.program import Span
from isa.table import (
    BY_KEY,
    INSTRUCTIONS,
    LOAD_IMMEDIATE,
    MAX_MR,
    MAX_VL,
    Instruction,
    Opcode,
    Role,
    Unit,
    load_constant,
)
from isa.timing import DOES, Hazard, HazardKind, HazardModel, VectorOperation, own_operand

_MNEMONIC = re.compile(r"(\S+) \[(\d+)-bit\]")
#: Mnemonics of branches and of instructions that write their first operand.
_WRITING = {LOAD_IMMEDIATE} | {
    row.mnemonic
    for row in INSTRUCTIONS
    if row.operands and row.operands[0].role is Role.DESTINATION
}
_BRANCHES = {
    row.mnemonic for row in INSTRUCTIONS if row.operands and row.operands[-1].role is Role.TARGET
}
_ENDS = ("jmp", "halt")
#: Assumed distance in bytes between addresses whose distance is unknown.
_APART = 1 << 48
#: Column of the note after an instruction.
_NOTE_COLUMN = 60

#: Register values by name; a register without an entry has an unknown value.
_Values = dict[str, int]


class WrittenLine(NamedTuple):
    """One line of a kernel: an instruction, or else a label, an assumption or a comment.

    Attributes:
        mnemonic: including the width, such as ``v.v.add [16-bit]``; "": no instruction.
        operands: register names, labels and numbers.
        site: file and line of the call that wrote it.
        note: comment.
        label: that is placed here. loop: it begins a loop, whose iterations the builder checks one
            after the other.
        assumed: from here on the first register contains the second and the number.
    """

    mnemonic: str = ""
    operands: tuple[str | int, ...] = ()
    site: str = ""
    note: str = ""
    label: str = ""
    loop: bool = False
    assumed: tuple[str, str, int] | None = None

    @property
    def row(self) -> Instruction | None:
        """Row of the instruction table, if the mnemonic has a width."""
        match = _MNEMONIC.fullmatch(self.mnemonic)
        return BY_KEY.get(f"{match[1]}[{match[2]}]") if match else None

    @property
    def words(self) -> "list[tuple[Instruction, Sequence[str | int]]]":
        """Rows and operands of the words.

        Raises:
            KeyError: there is no such instruction. ValueError: a constant beyond 64 bits.
        """
        if not self.mnemonic:
            return []
        if self.mnemonic == LOAD_IMMEDIATE:
            register, value = self.operands
            steps = [(BY_KEY[key], immediate) for key, immediate in load_constant(int(value))]
            return [(row, [register] * (len(row.operands) - 1) + [last]) for row, last in steps]
        constant = any(isinstance(operand, int) for operand in self.operands)
        row = self.row or (BY_KEY.get(f"{self.mnemonic}.imm") if constant else None)
        return [(row or BY_KEY[self.mnemonic], self.operands)]

    @property
    def text(self) -> str:
        """The line as assembly."""
        if self.label:
            return f"{self.label}:"
        if not self.mnemonic:
            return f"    ; {self.note}" if self.note else ""
        operands = [f"#{one}" if isinstance(one, int) else one for one in self.operands]
        text = f"    {self.mnemonic} {', '.join(operands)}".rstrip()
        return f"{text:<{_NOTE_COLUMN}}; {self.note}" if self.note else text

    def __str__(self) -> str:
        return f"{self.mnemonic} {', '.join(map(str, self.operands))} ({self.site})"


class HazardCheck:
    """Checks a kernel's lines; see the module's text. Call :meth:`before`, then :meth:`done`, once
    per line."""

    def __init__(self) -> None:
        self._model = HazardModel()
        self._issued: list[WrittenLine] = []
        self._constants: _Values = {}
        self._values: _Values = {}
        self._unknown = 0
        self._settings: dict[str, int | None] = {"set.vl": 1, "set.mr": 1}
        # Register values at jumps to a label further down.
        self._arrivals: dict[str, list[_Values]] = {}
        self._reached = True

    def constant(self, name: str, value: int) -> None:
        """Declare that register ``name`` contains ``value`` wherever it is read."""
        self._constants[name] = value

    def _label(self, name: str) -> None:
        """Enter a label. A register stays known if it has the same value on all paths that reach
        the label from above. If no jump from above reaches it, no register is known: the jumps come
        from below."""
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
        """The hazards of ``line`` if it comes next, one message each."""
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
            return f"{line} overwrites one of its own operands before reading it"
        does, did = DOES[hazard.what]
        return (
            f"{line} {does} what {self._issued[hazard.other]} {did}: distance {hazard.distance} "
            f"cycles, {hazard.needed} needed; put a v.drain between them"
        )

    def done(self, line: WrittenLine) -> None:
        """Record that ``line`` comes next."""
        if line.label and not line.loop:
            self._label(line.label)
        elif line.assumed is not None:
            name, base, offset = line.assumed
            self._values[name] = self._value(base) + offset
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
        """Record an instruction that writes a register."""
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
        """The vector instruction of ``line``; None if its length is unknown."""
        vl, mr = self._settings["set.vl"], self._settings["set.mr"]
        if row.reduction is None:
            mr = 1
        if vl is None or mr is None:
            return None
        result, first, second = (*map(self._value, line.operands), 0)[:3]
        return VectorOperation(row, result, first, second, vl, mr)
