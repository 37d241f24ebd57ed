"""Checks a kernel's schedule as it runs: hazards that no hardware catches, and cycles.

:class:`ScheduleModel` is shown every instruction that a program executes, in order, and answers two
questions at once.

*Is it safe?* The vector unit has no interlock (:mod:`isa.timing`). The model keeps, for each byte
of the scratchpad, the earliest beat at which it may have been produced and read if the vector unit
never waits, and the earliest moment at which a load or store may issue, which is when the vector
unit takes the instruction before it: :data:`isa.timing.VECTOR_HELD` places before that one, all
operands have been read. Whatever is closer than the contract allows in this worst case is a
:class:`Hazard`, whether or not it would show in a run.

*How long does it take?* In-order issue of one instruction a cycle, three more cycles for a taken
branch, a vector unit that works on one instruction and holds another, loads that make their
readers wait, and a memory that answers each 32-byte column after a fixed latency, one word a cycle.
It is an estimate to schedule by; the cosimulation measures.
"""

from dataclasses import dataclass

import numpy as np

from isa.program import Program
from isa.simulator import Outcome, Simulator
from isa.table import Format, Instruction, Role, Unit, VerticalOp, find
from isa.timing import VECTOR_HELD, VECTOR_LATENCY, WORD_BYTES, beats, passes, row_beats

__all__ = ["Hazard", "ScheduleModel", "Watched", "watch"]

_NEVER = -(1 << 40)
_COLUMN_BYTES = 32
#: Cycles that a taken branch costs beside its own.
_BRANCH_PENALTY = 3


@dataclass(frozen=True)
class Hazard:
    """A use of the scratchpad that comes too early.

    Attributes:
        pc: instruction that comes too early (word address).
        key: its key in the instruction table.
        what: what it would get wrong.
        address: first byte concerned.
        distance: cycles in the worst case. needed: cycles that the contract asks for.
    """

    pc: int
    key: str
    what: str
    address: int
    distance: int
    needed: int

    def __str__(self) -> str:
        return (
            f"{self.key} at {self.pc}: {self.what} of byte {self.address} "
            f"after {self.distance} cycles, {self.needed} needed"
        )


class ScheduleModel:
    """See the module's text.

    Parameters:
        latency: cycles from the request of a column to its first word.
        scratchpad_bytes: size of the scratchpad.

    Attributes:
        hazards: those found, each pair of instruction and kind once.
        cycles: when the last instruction issued.
        vector_busy: beats of the vector unit.
    """

    def __init__(self, *, latency: int = 60, scratchpad_bytes: int = 4096) -> None:
        self.latency = latency
        self.cycles = 0
        self.vector_busy = 0
        self.hazards: list[Hazard] = []
        self._seen: set[tuple[int, str]] = set()
        # Worst case: beats on an axis on which the vector unit never waits.
        self._now = 0
        # Ends of the last instructions; all but the first may still be in the vector unit.
        self._ends: list[int] = [0] * (VECTOR_HELD + 1)
        self._written = np.full(scratchpad_bytes, _NEVER, np.int64)
        self._read = np.full(scratchpad_bytes, _NEVER, np.int64)
        # Estimate.
        self._issue = 0
        self._start = 0
        self._end = 0
        self._registers: dict[int, int] = {}
        self._loads: list[tuple[int, int, int]] = []
        self._stores: list[tuple[int, int, int]] = []
        self._unit_free = 0
        self._bus_free = 0
        self._answered = 0

    def step(
        self,
        pc: int,
        instruction: Instruction,
        numbers: tuple[int, ...],
        values: tuple[int, ...],
        vl: int,
        mr: int,
        taken: bool,
    ) -> None:
        """One executed instruction.

        Parameters:
            pc: its word address.
            instruction: its table row.
            numbers: operand fields as encoded (register numbers, immediates), in assembly's order.
            values: what the registers among them hold before it; immediates as they are.
            vl, mr: vector settings.
            taken: it branched.
        """
        time = self._issue
        for operand, number in zip(instruction.operands, numbers, strict=True):
            if operand.is_register and operand.role is not Role.IGNORED:
                time = max(time, self._registers.get(number, 0))
        if instruction.unit is Unit.VECTOR:
            time = self._vector(pc, instruction, values, vl, mr, time)
        elif instruction.unit is Unit.LOAD_STORE:
            time = self._transfer(pc, instruction, numbers, values, time)
        elif instruction.key == "v.drain":
            self._now += VECTOR_LATENCY
            self._ends = [self._now] * (VECTOR_HELD + 1)
            time = max(time, self._end + VECTOR_LATENCY)
        elif instruction.key in ("memfence", "halt"):
            time = max(time, self._answered)
            if instruction.key == "halt":
                time = max(time, self._end + VECTOR_LATENCY)
        self._issue = time + 1 + (_BRANCH_PENALTY if taken else 0)
        self.cycles = time

    def _hazard(
        self,
        pc: int,
        instruction: Instruction,
        what: str,
        distances: np.ndarray,
        at: int,
        need: int,
    ) -> None:
        if distances.size and distances.min() < need and (pc, what) not in self._seen:
            self._seen.add((pc, what))
            worst = int(distances.argmin())
            self.hazards.append(
                Hazard(pc, instruction.key, what, at + worst, int(distances[worst]), need)
            )

    def _vector(
        self, pc: int, row: Instruction, values: tuple[int, ...], vl: int, mr: int, time: int
    ) -> int:
        assert row.width is not None
        size = row.width.bytes
        length = vl * size
        rows = mr if row.reduction is not None else 1
        per_row = row_beats(row, vl)
        result, first = values[:2]
        # Beat that reads each byte of a row, from the beginning of that row.
        offset = np.arange(length) // WORD_BYTES * passes(row)
        used = [(first + r * length, self._now + r * per_row + offset) for r in range(rows)]
        if row.format is Format.ABC and row.vertical is not VerticalOp.NOP:
            if row.operands[2].role is Role.ELEMENT_ADDRESS:
                used.append((values[2], np.full(size, self._now)))
            else:
                used += [(values[2], self._now + r * per_row + offset) for r in range(rows)]
        for address, when in used:
            span = slice(address, address + len(when))
            self._hazard(
                pc, row, "vector read", when - self._written[span], address, VECTOR_LATENCY
            )
            self._read[span] = np.maximum(self._read[span], when)
        if row.reduction is None:
            self._written[result : result + length] = self._now + offset + passes(row) - 1
        else:
            made = self._now + (1 + np.arange(rows)) * per_row - 1
            self._written[result : result + rows * size] = np.repeat(made, size)
        duration = beats(row, vl, mr)
        self._now += duration
        self._ends = [*self._ends[1:], self._now]

        written = length if row.reduction is None else rows * size
        ranges = [(address, address + len(when)) for address, when in used]
        time = self._clear(time, [*ranges, (result, result + written)], self._loads)
        time = self._clear(time, [(result, result + written)], self._stores)
        time = max(time, self._start)
        self._start = max(time + 1, self._end)
        self._end = self._start + duration
        self.vector_busy += duration
        return time

    @staticmethod
    def _clear(
        time: int, ranges: list[tuple[int, int]], transfers: list[tuple[int, int, int]]
    ) -> int:
        """When no range overlaps a transfer; forgets those that are over."""
        for start, end, done in transfers:
            if any(low < end and start < high for low, high in ranges):
                time = max(time, done)
        transfers[:] = [transfer for transfer in transfers if transfer[2] > time]
        return time

    def _transfer(
        self,
        pc: int,
        row: Instruction,
        numbers: tuple[int, ...],
        values: tuple[int, ...],
        time: int,
    ) -> int:
        assert row.width is not None
        size = row.width.bytes
        if row.mnemonic == "ld.reg":
            _, ready = self._request(time, values[1], size, words_out=0)
            self._registers[numbers[0]] = ready
            return time
        if row.mnemonic == "st.reg":
            self._request(time, values[0], size, words_out=1)
            return time
        length = values[2] * size
        if length == 0:
            return time
        # The vector unit has taken its last instruction, so those before the held ones have ended.
        earliest = self._ends[0]
        if row.mnemonic == "ld.sram":
            address, memory = values[:2]
            span = slice(address, address + length)
            self._hazard(pc, row, "load over operands", earliest - self._read[span], address, 1)
            self._hazard(
                pc,
                row,
                "load over results",
                earliest - self._written[span],
                address,
                VECTOR_LATENCY,
            )
            self._written[span] = _NEVER
            time = self._clear(time, [(address, address + length)], self._loads)
            _, done = self._request(time, memory, length, words_out=0)
            self._loads.append((address, address + length, done))
        else:
            memory, address = values[:2]
            span = slice(address, address + length)
            self._hazard(pc, row, "store", earliest - self._written[span], address, VECTOR_LATENCY)
            time = self._clear(time, [(address, address + length)], self._loads)
            sent, _ = self._request(time, memory, length, words_out=-(-length // WORD_BYTES))
            self._stores.append((address, address + length, sent))
        return time

    def _request(self, time: int, address: int, length: int, *, words_out: int) -> tuple[int, int]:
        """Estimate of a transfer: when its last request is sent, and when it is answered."""
        columns = (address + length - 1) // _COLUMN_BYTES - address // _COLUMN_BYTES + 1
        words = 0 if words_out else -(-length // WORD_BYTES)
        self._unit_free = max(self._unit_free, time + 1) + max(columns, words_out)
        self._bus_free = max(self._bus_free + words, self._unit_free + self.latency + min(words, 4))
        self._answered = max(self._answered, self._bus_free)
        return self._unit_free, self._bus_free


class Watched:
    """A simulator, launched with ``program``, that shows ``model`` every instruction it executes.

    Attributes:
        simulator, model: as given.
        instruction: the next instruction; None: it is none, and will fault.
    """

    def __init__(self, program: Program, simulator: Simulator, model: ScheduleModel) -> None:
        self.simulator = simulator
        self.model = model
        self._rows: list[tuple[Instruction | None, tuple[int, ...]]] = []
        for word in program.words:
            row = find(word)
            fields = () if row is None else tuple(field.extract(word) for field in row.format.value)
            self._rows.append((row, fields))

    def _next(self) -> tuple[Instruction | None, tuple[int, ...]]:
        pc = self.simulator.pc
        return self._rows[pc] if 0 <= pc < len(self._rows) else (None, ())

    @property
    def instruction(self) -> Instruction | None:
        """See the class."""
        return self._next()[0]

    def step(self) -> Outcome:
        """Execute one instruction."""
        simulator = self.simulator
        pc, vl, mr = simulator.pc, simulator.vl, simulator.mr
        row, numbers = self._next()
        values: tuple[int, ...] = ()
        if row is not None:
            values = tuple(
                simulator.registers[number] if operand.is_register else number
                for operand, number in zip(row.operands, numbers, strict=True)
            )
        outcome = simulator.step()
        if row is not None and outcome.state != "faulted":
            taken = simulator.pc not in (pc, pc + 1)
            self.model.step(pc, row, numbers, values, vl, mr, taken)
        return outcome


def watch(program: Program, simulator: Simulator, model: ScheduleModel) -> Outcome:
    """Run ``simulator``, launched with ``program``, to its end, and show ``model`` every step."""
    watched = Watched(program, simulator, model)
    while (outcome := watched.step()).state == "limit":
        pass
    return outcome
