"""Follows a running kernel and finds hazards that the hardware does not detect; estimates cycles.

:class:`ScheduleModel` receives every instruction that a program executes, in order, and computes
two results.

*Hazards*: detected by :mod:`isa.hazards` and collected here.

*Cycles*: in-order issue of one instruction per cycle, three more cycles for a taken branch, a
vector unit that executes one instruction and queues another, loads that stall their readers, and a
memory that answers each 32-byte column after a fixed latency, at one word per cycle. The result is
an estimate for scheduling; cosimulation measures the real cycles.
"""

from isa.hazards import Hazard, HazardLog
from isa.iss.simulator import Simulator
from isa.program import Program
from isa.run import EngineEnd
from isa.table import Instruction, Role, Unit, find
from isa.timing import VECTOR_LATENCY, WORD_BYTES, VectorOperation

from .feature_map import COLUMN_BYTES

__all__ = ["Hazard", "ScheduleModel", "Watched", "watch"]

#: Extra cycles of a taken branch.
_BRANCH_PENALTY = 3


class ScheduleModel:
    """Hazards and estimated cycles of a run; see the module's text.

    Parameters:
        latency: cycles from the request of a column to its first word.

    Attributes:
        cycles: cycle in which the last instruction was issued.
        vector_busy: beats of the vector unit.
    """

    def __init__(self, *, latency: int = 60) -> None:
        self.latency = latency
        self.cycles = 0
        self.vector_busy = 0
        self._log = HazardLog()
        self._issue = 0
        self._start = 0
        self._end = 0
        self._registers: dict[int, int] = {}
        self._loads: list[tuple[int, int, int]] = []
        self._stores: list[tuple[int, int, int]] = []
        self._unit_free = 0
        self._bus_free = 0
        self._answered = 0

    @property
    def hazards(self) -> list[Hazard]:
        """Hazards, each pair of instruction and kind once."""
        return self._log.hazards

    def step(
        self,
        pc: int,
        instruction: Instruction,
        numbers: tuple[int, ...],
        values: tuple[int, ...],
        vl: int,
        mr: int,
        branched: bool,
    ) -> None:
        """Process one executed instruction.

        Parameters:
            pc: the instruction's word address.
            instruction: its table row.
            numbers: operand fields as encoded (register numbers, immediates), in assembly order.
            values: register operands' values before it; immediates unchanged.
            vl, mr: the vector settings.
            branched: whether it is a branch that was taken.
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
            self._log.drained()
            time = max(time, self._end + VECTOR_LATENCY)
        elif instruction.key in ("memfence", "halt"):
            time = max(time, self._answered)
            if instruction.key == "halt":
                time = max(time, self._end + VECTOR_LATENCY)
        self._issue = time + 1 + (_BRANCH_PENALTY if branched else 0)
        self.cycles = time

    def _vector(
        self, pc: int, row: Instruction, values: tuple[int, ...], vl: int, mr: int, time: int
    ) -> int:
        result, first, second = (*values, 0)[:3]
        operation = VectorOperation(row, result, first, second, vl, mr)
        self._log.vector(operation, pc)
        ranges = [(span.start, span.start + span.size) for span in operation.spans]
        duration = operation.extents.beats
        time = self._clear(time, ranges, self._loads)
        time = self._clear(time, ranges[:1], self._stores)
        time = max(time, self._start)
        self._start = max(time + 1, self._end)
        self._end = self._start + duration
        self.vector_busy += duration
        return time

    @staticmethod
    def _clear(
        time: int, ranges: list[tuple[int, int]], transfers: list[tuple[int, int, int]]
    ) -> int:
        """First cycle in which no transfer overlaps a range; removes finished transfers."""
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
        operands = {
            operand.role: value for operand, value in zip(row.operands, values, strict=True)
        }
        memory = operands[Role.DRAM_ADDRESS]
        if not row.scratchpad:
            _, ready = self._request(time, memory, size, words_out=int(not row.loads))
            if row.loads:
                self._registers[numbers[0]] = ready
            return time
        length = operands[Role.LENGTH] * size
        if length == 0:
            return time
        address = operands[Role.SCRATCHPAD_ADDRESS]
        self._log.transfer(row, address, length, pc)
        time = self._clear(time, [(address, address + length)], self._loads)
        if row.loads:
            _, done = self._request(time, memory, length, words_out=0)
            self._loads.append((address, address + length, done))
        else:
            sent, _ = self._request(time, memory, length, words_out=-(-length // WORD_BYTES))
            self._stores.append((address, address + length, sent))
        return time

    def _request(self, time: int, address: int, length: int, *, words_out: int) -> tuple[int, int]:
        """Estimate when a transfer's last request is sent and answered."""
        columns = (address + length - 1) // COLUMN_BYTES - address // COLUMN_BYTES + 1
        words = 0 if words_out else -(-length // WORD_BYTES)
        self._unit_free = max(self._unit_free, time + 1) + max(columns, words_out)
        self._bus_free = max(self._bus_free + words, self._unit_free + self.latency + min(words, 4))
        self._answered = max(self._answered, self._bus_free)
        return self._unit_free, self._bus_free


class Watched:
    """A simulator, launched with ``program``, that passes every executed instruction to ``model``.

    Attributes:
        simulator, model: see above.
        instruction: the next instruction; None: the next word is not an instruction, and will
            fault.
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
        return self._next()[0]

    def step(self) -> EngineEnd:
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
            branched = simulator.pc not in (pc, pc + 1)
            self.model.step(pc, row, numbers, values, vl, mr, branched)
        return outcome


def watch(program: Program, simulator: Simulator, model: ScheduleModel) -> EngineEnd:
    """Run ``simulator``, launched with ``program``, to the end and pass every step to ``model``."""
    watched = Watched(program, simulator, model)
    while (outcome := watched.step()).state == "running":
        pass
    return outcome
