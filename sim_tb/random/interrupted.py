"""Final states allowed for a random program with memory errors or a stop by the host.

The instruction set simulator does not know the time of these events. But an engine issues in order
and completes the instructions that it has issued. So at some place in the simulator's run,
registers, scratchpad and memory are those that the engine left, except that

- failing columns of memory are never written, and values loaded from them are unknown;
- after an error, one vector instruction, load or store waiting in dispatch is not executed, though
  scalar instructions after it may be.

The end must fit that place. Without a stop or an error it is the program's own end. An error is
reported if and only if an access up to there met one. The program's own fault is reported at its
address, a memory error at that of the instruction that waited or was issued last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isa.faults import FaultCause
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.run import EngineEnd
from isa.table import FIELD_A, FIELD_B, FIELD_C, Instruction, Opcode, Unit, find
from pe.config import PeConfig

from .random_program import RandomProgram
from .reference import same_place, simulator_of

#: Instructions that wait until dispatch is empty.
_FENCES = (Opcode.DRAIN, Opcode.MEMFENCE, Opcode.SET_WS)


#: Bytes of the DRAM that a load or store accesses, and the scratchpad address or register loaded;
#: a store loads neither.
_Access = tuple[range, int | None, int | None]


@dataclass(frozen=True)
class _Place:
    """A place in the simulator's run, perhaps without the last instruction that waited.

    Attributes:
        registers, scratchpad, memory: their contents, valid until the next place is requested;
            registers are None where unknown.
        unknown: which bytes of the scratchpad are unknown.
        before, following: address of the last word executed and of the next.
        failing: number of instructions so far with a failed access.
        ended: whether the program is at its own end.
        dropped: address of the instruction omitted, or None.
    """

    registers: list[int | None]
    scratchpad: NDArray[np.uint8]
    unknown: NDArray[np.bool_]
    memory: list[NDArray[np.uint8]]
    before: int
    following: int
    failing: int
    ended: bool = False
    dropped: int | None = None

    def copy(self) -> "_Place":
        """The same with contents that stay valid."""
        return replace(
            self,
            scratchpad=self.scratchpad.copy(),
            unknown=self.unknown.copy(),
            memory=[window.copy() for window in self.memory],
        )

    def allows(
        self,
        registers: Sequence[int],
        scratchpad: NDArray[np.uint8],
        memory: list[NDArray[np.uint8]],
    ) -> bool:
        """Whether these contents agree with it; contents that could not be read are empty."""
        pairs = zip(self.registers, registers, strict=False)
        if any(mine is not None and mine != other for mine, other in pairs):
            return False
        if len(scratchpad) and not ((self.scratchpad == scratchpad) | self.unknown).all():
            return False
        return all(map(np.array_equal, self.memory, memory))


def interruption(
    program: RandomProgram,
    config: PeConfig,
    end: EngineEnd,
    image: DramImage,
    memory: DramImage,
) -> tuple[list[str], bool]:
    """Explain the state that the engine left.

    Parameters:
        image: memory that the engine left. memory: its initial contents, which are changed.

    Returns:
        The unexplained differences, one per line, and whether the engine ended before the program's
        own end.
    """
    simulator = simulator_of(program, config, memory)
    scratchpad = np.frombuffer(end.scratchpad, np.uint8)
    windows = [_bytes(image, start, len(content)) for start, content in program.windows]
    fitting = [
        place
        for place in _places(program, simulator, memory)
        if place.allows(end.registers, scratchpad, windows)
    ]
    outcome = simulator.run()
    reasons = []
    for place in fitting:
        reason = _contradiction(place, program, config, end, outcome)
        if not reason:
            return [], not place.ended
        reasons.append(reason)
    state = f"{end.state.upper()} {end.cause.name} at {end.pc}"
    if end.memory_error:
        state += " with a memory error"
    why = reasons[-1] if reasons else "no place in the program leaves these contents"
    return [f"end: engine {state}: {why}"], False


def _contradiction(
    place: _Place, program: RandomProgram, config: PeConfig, end: EngineEnd, outcome: EngineEnd
) -> str:
    """Why an engine that ended at ``place`` can't report ``end``; "" if it can."""
    stop = program.launch.stop_after
    stopped = stop is not None and end.elapsed_cycles >= stop
    if end.memory_error != (place.failing > 0):
        return f"{place.failing} instructions met errors"
    if place.dropped is not None and not end.memory_error:
        return "an instruction was dropped without an error"
    if end.state == "halted":
        if end.memory_error or end.cause is not FaultCause.NONE:
            return "halted in spite of a fault"
        if not stopped and not (place.ended and outcome.state == "halted"):
            return "halted before its end"
        return ""
    if end.state != "faulted":
        return "it has not ended"
    if end.cause is FaultCause.MEMORY_ERROR:
        allowed = {place.before, place.following}
        if place.dropped is not None:
            allowed = {place.dropped}
        if not end.memory_error or end.pc not in allowed:
            return f"expected at {sorted(allowed)}"
        return ""
    if not place.ended or end.cause is not outcome.cause:
        return f"its own end is {outcome.state} {outcome.cause.name}"
    if not same_place(outcome, end.pc, program.words, config):
        return f"its own fault is at {outcome.pc}"
    return ""


def _places(program: RandomProgram, simulator: Simulator, memory: DramImage) -> Iterator[_Place]:
    """All places, from start to end; their arrays and lists are valid until the next place."""
    errors = range(*program.memory.errors)
    failed_columns = memory.read(errors.start, len(errors))
    windows = [_bytes(memory, start, len(content)) for start, content in program.windows]
    unknown = np.zeros(len(simulator.scratchpad), np.bool_)
    unknown_registers: set[int] = set()

    failing = 0
    before = simulator.pc

    def reached(*, ended: bool = False) -> _Place:
        registers: list[int | None] = list(simulator.registers)
        for number in unknown_registers:
            registers[number] = None
        contents = registers, simulator.scratchpad, unknown, windows
        return _Place(*contents, before, simulator.pc, failing, ended)

    # The instruction that may be in dispatch: the place before it, and the register that it writes.
    dispatched: _Place | None = None
    target: int | None = None

    def places(ended: bool) -> Iterator[_Place]:
        place = reached(ended=ended)
        yield place
        if dispatched is not None:
            registers = list(place.registers)
            if target is not None:
                registers[target] = dispatched.registers[target]
            yield replace(
                dispatched,
                registers=registers,
                before=before,
                following=place.following,
                ended=ended,
                dropped=dispatched.following,
            )

    yield from places(False)
    while True:
        pc = simulator.pc
        word = program.words[pc] if 0 <= pc < len(program.words) else 0
        row = find(word)
        access = None if row is None else _access(row, word, simulator.registers)
        dram, scratchpad, register = access or (range(0), None, None)
        start = None
        if row is not None and row.unit in (Unit.VECTOR, Unit.LOAD_STORE):
            start = reached().copy()
        if simulator.step().state != "running":
            if row is not None and row.opcode == Opcode.HALT:
                before = pc
            yield from places(True)
            return
        before = pc
        if start is not None:
            dispatched, target = start, register
        elif row is not None and row.opcode in _FENCES:
            dispatched = None
        bad = range(max(dram.start, errors.start), min(dram.stop, errors.stop))
        if bad:
            failing += 1
            if register is not None:
                unknown_registers.add(register)
            elif scratchpad is not None:
                first = scratchpad + bad.start - dram.start
                unknown[first : first + len(bad)] = True
            else:
                memory.write(errors.start, failed_columns)
        yield from places(False)


def _access(row: Instruction, word: int, registers: list[int]) -> _Access | None:
    """The access of ``row``, if it is a load or store that does not fault."""
    if row.unit is not Unit.LOAD_STORE or row.width is None:
        return None
    fields = [field.extract(word) for field in (FIELD_A, FIELD_B, FIELD_C)]
    used = fields[: len(row.operands)]
    if any(number >= len(registers) for number in used):
        return None
    values = [registers[number] for number in used]
    store = row.opcode in (Opcode.ST_SRAM, Opcode.ST_REG)
    dram = values[0 if store else 1]
    if row.opcode in (Opcode.LD_REG, Opcode.ST_REG):
        register = None if store else fields[0]
        return range(dram, dram + row.width.bytes), None, register
    scratchpad = None if store else values[0]
    return range(dram, dram + values[2] * row.width.bytes), scratchpad, None


def _bytes(image: DramImage, start: int, size: int) -> NDArray[np.uint8]:
    return image.array(start, size, np.uint8)
