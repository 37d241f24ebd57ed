"""Differences between an engine's Verilog and the instruction set simulator: at the end of a run,
and the first instruction that causes one.

A stopped engine completes and counts the instructions that it has issued, so its registers,
scratchpad and memory are comparable with the simulator's after the same number of instructions. The
search stops the engine later and later, then bisects between the last equal state and the first
different one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, groupby

import numpy as np

from isa.accesses import Access, Space, accesses
from isa.assembly.disassembler import instruction_text
from isa.compiled.simulator import CompiledSimulator
from isa.hazards import HazardLog
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.iss.state import Operation, ProcessorState
from isa.program import Program, SourceLine
from isa.run import EngineEnd, Launch
from isa.table import Instruction, decode
from isa.timing import Hazard
from pe.config import PeConfig
from sim_tb.random.reference import differences, expected_end
from sim_tb.waves.pipeline import TracedInstruction

from .engine import CosimError, MemoryBehaviour, PeSimulation

#: Instructions reported, up to and including the differing one.
COMMITS = 8
#: Cycles from the launch to the first stop.
_FIRST_STOP = 256


@dataclass(frozen=True)
class Commit:
    """An executed instruction.

    Attributes:
        number: its place in the order of execution, from 1 on.
        pc: word address. text: in assembly. source: its line; None: unknown.
    """

    number: int
    pc: int
    text: str
    source: SourceLine | None

    def to_json(self) -> dict[str, object]:
        """The same as plain data."""
        where = None if self.source is None else f"{self.source.file}:{self.source.line}"
        return {"number": self.number, "pc": self.pc, "text": self.text, "source": where}


@dataclass(frozen=True)
class Content:
    """Adjacent bytes, or a register: an operand of the differing instruction, or what differs
    after it.

    Attributes:
        space: where it is.
        start: address of the first byte, or number of the register. bytes_each: bytes per element.
        expected: on the simulator. got: on the engine, of the same length; None for an operand,
            which is equal on both.
    """

    space: Space
    start: int
    bytes_each: int
    expected: bytes
    got: bytes | None = None

    def to_json(self) -> dict[str, object]:
        """The same as plain data."""
        place = {"space": self.space, "start": self.start}
        if self.got is None:
            return place | {"content": self.expected.hex()}
        return place | {"expected": self.expected.hex(), "got": self.got.hex()}


@dataclass(frozen=True, kw_only=True)
class FirstDifference:
    """The first difference between an engine and the simulator.

    Attributes:
        cycle: cycle of its issue since the launch, as the host counts.
        operands: what it reads. differing: where the two differ afterwards, in order.
        end: how the end of the program differs; "" if it does not.
        commits: the last instructions on the simulator, up to :attr:`instruction`.
        runs: engine runs that the search took.
        passages: the last instructions that the engine executed, in order, if waveforms show them.
    """

    cycle: int
    operands: tuple[Content, ...]
    differing: tuple[Content, ...]
    end: str
    commits: tuple[Commit, ...]
    runs: int
    passages: tuple[TracedInstruction, ...] = ()

    @property
    def instruction(self) -> Commit:
        """The instruction after which the two differ."""
        return self.commits[-1]

    def to_json(self) -> dict[str, object]:
        """The same as plain data."""
        return {
            "instruction": self.instruction.to_json(),
            "cycle": self.cycle,
            "operands": [item.to_json() for item in self.operands],
            "differing": [item.to_json() for item in self.differing],
            "end": self.end,
            "commits": [item.to_json() for item in self.commits],
            "runs": self.runs,
            "passages": [
                {"pc": passage.pc, "fetched": passage.start, "done": passage.end}
                for passage in self.passages
            ],
        }


@dataclass(frozen=True)
class _State:
    """The engine after a stop, and how it differs.

    Attributes:
        executed: instructions. end: how its end differs. places: where contents differ.
        ended: whether the program ended by itself. broken: whether the engine did not end.
    """

    executed: int
    end: str
    places: tuple[Content, ...]
    ended: bool
    broken: bool = False

    @property
    def equal(self) -> bool:
        return not (self.end or self.places)


class _Search:
    """Runs of ``machine`` up to a given stop.

    Parameters: those of :func:`first_difference`.
    """

    def __init__(
        self,
        machine: PeSimulation,
        launch: Launch,
        behaviour: MemoryBehaviour,
        memory_bytes: int,
        fill: Callable[[DramImage], None],
    ) -> None:
        self.machine, self.launch, self.behaviour = machine, launch, behaviour
        self.memory_bytes, self.fill = memory_bytes, fill
        self.program = launch.program
        self.config: PeConfig = machine.config
        self.runs = 0
        # A reset keeps the scratchpad of the previous run; the simulator begins with zeros.
        readable = self.config.sram == "behavioural"
        self.scratchpad = bytes(self.config.scratchpad_bytes) if readable else None

    def at(self, stop: int) -> _State:
        """The state after a stop at ``stop`` cycles from the launch."""
        self.runs += 1
        size = self.memory_bytes
        with DramImage(size) as image, DramImage(size) as expected:
            for memory in (image, expected):
                self.fill(memory)
            launch = replace(self.launch, stop_after=stop)
            try:
                result = self.machine.run(
                    launch, image, memory=self.behaviour, scratchpad=self.scratchpad
                )
            except CosimError as error:
                return _State(0, str(error), (), ended=True, broken=True)
            return self._compared(result.engine, image, expected, stop)

    def _compared(self, end: EngineEnd, image: DramImage, memory: DramImage, stop: int) -> _State:
        executed = sum(count for name, count in end.counters.items() if name.startswith("ISSUED_"))
        ended = end.elapsed_cycles < stop or end.state != "halted"
        simulator = self.simulator(memory, CompiledSimulator)
        outcome = simulator.run(executed)
        if ended and outcome.state == "running":
            # The program's `halt`, or a fault, which does not count as an instruction.
            outcome = simulator.step()
            executed = max(executed, outcome.executed)
        return _State(
            executed,
            self._end(simulator, outcome, end, executed, ended=ended),
            tuple(self._places(simulator, end, image, memory)),
            ended,
        )

    def simulator(self, memory: DramImage, kind: type[Simulator], **settings: object) -> Simulator:
        """The simulator at the launch."""
        return kind(
            self.program,
            memory,
            parameters=self.launch.parameters,
            **self.config.limits,
            **settings,  # type: ignore[arg-type]
        )

    def _end(
        self,
        simulator: Simulator,
        outcome: EngineEnd,
        end: EngineEnd,
        executed: int,
        *,
        ended: bool,
    ) -> str:
        # The host's stop may come while a `halt` waits for the instructions before it.
        halts = outcome.state == "halted" and outcome.executed == executed
        if not ended and outcome.state != "running" and not halts:
            return f"the engine still runs, expected {outcome.state} {outcome.cause.name}"
        if not ended:
            return ""
        expected = expected_end(simulator, outcome)
        lines = differences(expected, end, self.program.words, self.config)
        return next((line for line in lines if line.startswith(("end", "program counter"))), "")

    def _places(
        self, simulator: Simulator, end: EngineEnd, image: DramImage, memory: DramImage
    ) -> Iterator[Content]:
        for number, (got, value) in enumerate(
            zip(end.registers, simulator.registers, strict=False)
        ):
            if got != value:
                pair = (pattern.to_bytes(8, "little") for pattern in (value, got))
                yield Content("register", number, 8, *pair)
        if end.scratchpad:
            mine = np.frombuffer(end.scratchpad, np.uint8)
            places = np.flatnonzero(mine != simulator.scratchpad).tolist()
            for start, size in _stretches(places):
                expected = simulator.scratchpad[start : start + size].tobytes()
                yield Content(
                    "scratchpad", start, 1, expected, end.scratchpad[start : start + size]
                )
        for start, size in _stretches(image.differences(memory)):
            yield Content("memory", start, 1, memory.read(start, size), image.read(start, size))


def _stretches(places: Iterator[int] | list[int]) -> Iterator[tuple[int, int]]:
    """First place and length of each run of consecutive places."""
    for _, group in groupby(enumerate(places), lambda pair: pair[1] - pair[0]):
        stretch = [place for _, place in group]
        yield stretch[0], len(stretch)


def first_difference(
    machine: PeSimulation,
    launch: Launch,
    fill: Callable[[DramImage], None],
    *,
    memory_bytes: int,
    behaviour: MemoryBehaviour | None = None,
    commits: int = COMMITS,
    progress: Callable[[int], None] | None = None,
) -> FirstDifference | None:
    """Find the first instruction of ``launch`` after which the engine differs from the simulator.

    Parameters:
        machine: an open machine of an engine with counters.
        launch: from reset, on a single engine. fill: writes the initial memory contents into an
            image of ``memory_bytes``.
        behaviour: of the memory; None: the default.
        commits: instructions to report, at least 1.
        progress: called with the number of runs so far.

    Returns:
        None if neither the end nor any stop tried shows a difference.

    Raises:
        CosimError: the engine has no counters, which tell where it stopped.
        support.native.CompilerError: there is no C++ compiler.
    """
    if not machine.config.counters:
        raise CosimError("the first difference can't be found: the engine has no counters")
    search = _Search(machine, launch, behaviour or MemoryBehaviour(), memory_bytes, fill)

    def at(stop: int) -> _State:
        state = search.at(stop)
        if progress is not None:
            progress(search.runs)
        return state

    low, high = 0, _FIRST_STOP
    executed = 0
    while (state := at(high)).equal:
        if state.ended or high > launch.max_cycles:
            return None
        low, executed, high = high, state.executed, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        middle_state = at(middle)
        if middle_state.equal:
            low, executed = middle, middle_state.executed
        else:
            high, state = middle, middle_state
    number = executed + 1 if state.broken else max(1, state.executed)
    return _described(search, state, number, high, commits)


def _described(
    search: _Search, state: _State, number: int, cycle: int, commits: int
) -> FirstDifference:
    """The report on instruction ``number``, counted from 1, which leads to ``state``."""
    program = search.program
    reads: dict[int, Callable[[], tuple[Content, ...]]] = {}

    def observe(
        machine: ProcessorState, row: Instruction, word: int, address: int, operation: Operation
    ) -> Operation:
        reads[address] = lambda: _operands(machine, row, word)
        return operation

    last: list[Commit] = []
    with DramImage(search.memory_bytes) as memory:
        search.fill(memory)
        simulator = search.simulator(memory, Simulator, observer=observe)
        first = max(1, number - commits + 1)
        simulator.run(first - 1)
        operands: tuple[Content, ...] = ()
        for ordinal in range(first, number + 1):
            pc = simulator.pc
            last.append(_commit(program, ordinal, pc))
            operands = reads[pc]() if pc in reads else ()
            simulator.step()
    width = _width(program, last[-1].pc)
    return FirstDifference(
        cycle=cycle,
        operands=operands,
        differing=tuple(_of_elements(place, width) for place in state.places),
        end=state.end,
        commits=tuple(last),
        runs=search.runs,
    )


def _commit(program: Program, number: int, pc: int) -> Commit:
    decoded = decode(program.words[pc]) if 0 <= pc < len(program.words) else None
    text = "no instruction" if decoded is None else instruction_text(*decoded)
    return Commit(number, pc, text, program.source.get(pc))


def _width(program: Program, pc: int) -> int:
    """Bytes per element of the instruction at ``pc``; 1 if it has no elements."""
    decoded = decode(program.words[pc]) if 0 <= pc < len(program.words) else None
    return 1 if decoded is None or decoded[0].width is None else decoded[0].width.bytes


def _operands(state: ProcessorState, row: Instruction, word: int) -> tuple[Content, ...]:
    operands = [
        Content("register", number, 8, state.registers[number].to_bytes(8, "little"))
        for number in dict.fromkeys(field.extract(word) for field in row.reads)
        if number < len(state.registers)
    ]
    width = 1 if row.width is None else row.width.bytes
    access = accesses(state, row, word)
    for operand in () if access is None else access():
        content = _content(state, operand)
        if content is not None and not operand.writes:
            operands.append(Content(operand.space, operand.start, width, content))
    return tuple(operands)


def _content(state: ProcessorState, access: Access) -> bytes | None:
    """The bytes of ``access``; None for a register, or if not all of them exist."""
    end = access.start + access.size
    if access.space == "scratchpad" and end <= len(state.scratchpad):
        return bytes(state.scratchpad[access.start : end])
    if access.space == "memory" and end <= state.memory_bytes:
        return state.memory.read(access.start, access.size)
    return None


def _of_elements(place: Content, width: int) -> Content:
    """``place`` as elements of ``width`` bytes, if it consists of whole elements."""
    if place.space == "register" or len(place.expected) % width:
        return place
    return replace(place, bytes_each=width)


#: Maximum bytes shown of a difference in memory.
_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Result of a comparison.

    Attributes:
        differences: one line each for end, registers, scratchpad and memory, with the first bytes
            that differ; empty if engine and simulator agree. For a program with hazards on the
            timing model: why the two are not compared.
        hazards: that the simulator found; they explain most differences.
        fault: see :attr:`isa.run.EngineEnd.fault`.
        saturated: see :attr:`isa.iss.simulator.Simulator.saturated`.
    """

    differences: tuple[str, ...]
    hazards: tuple[Hazard, ...]
    saturated: tuple[int, ...]
    fault: str = ""

    @property
    def match(self) -> bool:
        """Whether engine and simulator agree."""
        return not self.differences


def compare_run(
    program: Program,
    end: EngineEnd,
    memory: DramImage,
    start: DramImage,
    *,
    config: PeConfig,
    parameters: int = 0,
) -> Comparison:
    """Compare the final state of ``program`` with the simulator's.

    The comparison covers state, cause and program counter at the end, all memory, and, with
    ``behavioural`` memories, which can be read, all registers and the scratchpad.

    Parameters:
        end: of a run on a single engine of ``config`` whose scratchpad was zero at the start.
        memory: after the run. start: before the run; the simulator changes it.
        parameters: DRAM address of the parameter block.
    """
    log = HazardLog()
    simulator = Simulator(
        program,
        start,
        parameters=parameters,
        **config.limits,
        observer=log.observer(),
        count_saturation=True,
    )
    # An instruction takes at least one cycle, so a run of more instructions must differ.
    outcome = simulator.run(end.elapsed_cycles)
    lines = differences(expected_end(simulator, outcome), end, program.words, config)
    places = memory.differences(start)
    if (first := next(places, None)) is not None:
        count = sum(1 for _ in chain([first], places))
        size = min(_SHOWN, memory.size - first)
        mine, theirs = (image.read(first, size).hex(" ") for image in (memory, start))
        lines.append(
            f"memory at {first:#x}: engine {mine}, expected {theirs} ({count} bytes differ)"
        )
    return Comparison(
        differences=tuple(lines),
        hazards=tuple(log.hazards),
        saturated=simulator.saturated,
        fault=outcome.fault,
    )
