"""Programs that bring each instruction into each situation of ``pe/frontend/crosses.py``.

Each instruction runs after it waited for nothing, for a loaded register, for a range in transfer,
for an entry of the array range check, and for its unit; after a scalar instruction whose result it
takes; and, on the vector unit, with its result apart from, exactly on, and overlapping a source.
"""

from collections.abc import Iterator
from functools import cache

from isa.instruction import Instruction, Role
from isa.program import Program
from isa.run import Launch
from isa.table import BY_KEY, Unit
from isa.workspace import Workspace
from pe.config import PeConfig
from sim_tb.harness.engine import ALONE
from sim_tb.harness.memory import MemoryBehaviour
from sim_tb.random.random_program import RandomProgram

__all__ = ["directed_count", "directed_program"]

#: Places in memory: data, values of loaded registers, and a workspace with its descriptor.
_DATA, _TABLE, _DESCRIPTOR, _WINDOW = 0x1000, 0x2000, 0x3000, 0x3800
_WORKSPACE = Workspace(
    image=_DATA,
    window=_WINDOW,
    width=4,
    height=4,
    pixel_bytes=8,
    output_width=2,
    output_height=2,
    kernel=2,
)
#: Places in the scratchpad: source, second source, results by where they lie, and what busies the
#: vector unit.
_SOURCE, _SECOND = 1024, 1600
_RESULTS = {"apart": 2048, "same": _SOURCE, "overlapping": _SOURCE - 8}
_BUSY_SOURCE, _BUSY_RESULT = 2560, 3072
#: Bytes of a vector, and of a column of results.
_VECTOR_BYTES, _RESULT_BYTES = 24, 16
#: Registers of operands, and others.
_OPERANDS = (10, 11, 12)
_COUNT, _PLACE, _OTHER, _FOURTH = 20, 21, 22, 23
#: Words of a program, at most.
_WORDS = 900


class _Directed:
    """A program under construction: its words, and the table of values to load."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.table = bytearray()

    def emit(self, key: str, *operands: int) -> None:
        row = BY_KEY[key]
        word = row.match
        for operand, value in zip(row.operands, operands, strict=True):
            word |= operand.field.insert(value)
        self.words.append(word)

    def quiet(self) -> None:
        """Wait until nothing is under way."""
        self.emit("v.drain")
        self.emit("memfence")

    def set(self, register: int, value: int) -> None:
        self.emit("mov.imm", register, value)

    def load(self, register: int, value: int) -> None:
        """Load ``value``, which takes a while."""
        self.set(_PLACE, _TABLE + len(self.table))
        self.table += value.to_bytes(8, "little")
        self.emit("ld.reg[64]", register, _PLACE)

    def transfer(self, place: int) -> None:
        """Load a range of the scratchpad, which takes long."""
        self.set(_COUNT, 32)
        self.set(_OTHER, place)
        self.set(_PLACE, _DATA)
        self.emit("ld.sram[64]", _OTHER, _PLACE, _COUNT)


def _values(row: Instruction, place: str) -> list[int]:
    """Value of each operand of ``row``: of its register, or the immediate."""
    values = {
        Role.RESULT_ADDRESS: _RESULTS[place],
        Role.MATRIX_ADDRESS: _SOURCE,
        Role.DRAM_ADDRESS: _DATA,
        Role.SCRATCHPAD_ADDRESS: _SOURCE,
        Role.LENGTH: 4,
        Role.TARGET: 1,
    }
    if row.key == "set.ws":
        return [_DESCRIPTOR]
    chosen = []
    for number, operand in enumerate(row.operands):
        second = number == 2 or Role.MATRIX_ADDRESS in {one.role for one in row.operands[:number]}
        source = _SECOND if second else _SOURCE
        chosen.append(values.get(operand.role, source if row.unit is Unit.VECTOR else 2))
    return chosen


def _run(program: _Directed, row: Instruction, values: list[int]) -> None:
    registers = iter(_OPERANDS)
    pairs = zip(row.operands, values, strict=True)
    program.emit(row.key, *(next(registers) if o.is_register else value for o, value in pairs))


def _prepared(program: _Directed, row: Instruction, place: str = "apart") -> list[int]:
    """Set the registers of ``row`` and wait until nothing is under way; values of its operands."""
    values = _values(row, place)
    in_registers = [v for o, v in zip(row.operands, values, strict=True) if o.is_register]
    for register, value in zip(_OPERANDS, in_registers, strict=False):
        program.set(register, value)
    program.quiet()
    return values


def _situations(program: _Directed, row: Instruction) -> None:
    if row.width is not None:
        size = row.width.bits // 8
        for key, value in (("set.vl", _VECTOR_BYTES // size), ("set.mr", _RESULT_BYTES // size)):
            program.set(_FOURTH, value)
            program.emit(key, _FOURTH)
    for place in _RESULTS if row.unit is Unit.VECTOR else ("apart",):
        values = _prepared(program, row, place)
        _run(program, row, values)
        if row.unit in (Unit.VECTOR, Unit.LOAD_STORE):
            _prepared(program, row, place)
            program.transfer(_SOURCE)
            _run(program, row, values)
        _prepared(program, row, place)
        if row.unit is Unit.VECTOR:
            program.set(_PLACE, _BUSY_SOURCE)
            program.set(_OTHER, _BUSY_RESULT)
            for _ in range(4):
                program.emit("v.v.mul[64]", _OTHER, _PLACE, _PLACE)
            _run(program, row, values)
        elif row.unit is Unit.LOAD_STORE:
            program.transfer(_BUSY_SOURCE)
            _run(program, row, values)
            _prepared(program, row)
            for at in (_BUSY_SOURCE, _BUSY_RESULT):
                program.transfer(at)
            _run(program, row, values)
    for number, register in enumerate(_OPERANDS[: sum(o.is_register for o in row.operands)]):
        values = _prepared(program, row)
        in_registers = [v for o, v in zip(row.operands, values, strict=True) if o.is_register]
        program.load(register, in_registers[number])
        _run(program, row, values)
        _prepared(program, row)
        program.set(register, in_registers[number])
        _run(program, row, values)


@cache
def _programs(config: PeConfig) -> tuple[_Directed, ...]:
    def parts() -> Iterator[_Directed]:
        program = _Directed()
        for row in config.rows:
            if row.key == "halt":
                continue
            if len(program.words) > _WORDS * 2 // 3:
                yield program
                program = _Directed()
            _situations(program, row)
        yield program

    made = tuple(parts())
    for program in made:
        program.quiet()
        program.emit("halt")
        assert len(program.words) <= config.instruction_words
    return made


def directed_count(config: PeConfig) -> int:
    """How many programs there are."""
    return len(_programs(config))


def directed_program(number: int, config: PeConfig, disturbed: float = 0.0) -> RandomProgram:
    """Program ``number`` of the engine, with the signature of
    :func:`sim_tb.random.programs.random_program`."""
    assert not disturbed
    program = _programs(config)[number]
    data = bytes((7 * n + number) % 251 for n in range(512))
    return RandomProgram(
        seed=number,
        launch=Launch(program=Program(tuple(program.words))),
        windows=(
            (_DATA, data),
            (_TABLE, bytes(program.table)),
            (_DESCRIPTOR, _WORKSPACE.pack()),
        ),
        scratchpad=bytes((5 * n + 3) % 256 for n in range(config.scratchpad_bytes)),
        identity=ALONE,
        memory=MemoryBehaviour(latency=100, bandwidth=32),
        reset=True,
        fault="",
    )
