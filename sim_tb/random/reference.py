"""The final state that a random program should leave, and its differences from the engine's."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from isa.assembly.disassembler import disassemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.iss.simulator import Observer, Outcome, Simulator
from isa.run import EngineEnd
from isa.table import Opcode, find
from pe.config import PeConfig
from pe.interface import EXACT_PC_WORDS, PC_BITS

from .random_program import RandomProgram

__all__ = [
    "Expected",
    "differences",
    "expected_end",
    "is_late",
    "listing",
    "pc_words",
    "run_reference",
    "simulator_of",
]

#: Far more than a random program executes.
_LIMIT = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Expected final state of the engine.

    Attributes:
        pc: of a fault; the engine knows it modulo :func:`pc_words`. late: the engine reports the
            fault later, at another place.
    """

    state: str
    cause: FaultCause
    pc: int
    pc_words: int
    late: bool
    registers: list[int]
    scratchpad: bytes


def simulator_of(
    program: RandomProgram,
    config: PeConfig,
    memory: DramImage,
    kind: type[Simulator] = Simulator,
    *,
    observer: Observer | None = None,
    count_saturation: bool = False,
) -> Simulator:
    """The instruction set simulator, launched with ``program``; it changes ``memory``."""
    return kind(
        program.words,
        memory,
        pe_index=program.pe_index,
        vault=program.vault,
        slot=program.slot,
        pe_count=program.pe_count,
        parameters=program.parameters,
        **config.limits,
        scratchpad=program.scratchpad,
        observer=observer,
        count_saturation=count_saturation,
    )


def run_reference(program: RandomProgram, config: PeConfig, memory: DramImage) -> Expected:
    """Run ``program`` on the instruction set simulator; it changes ``memory``."""
    simulator = simulator_of(program, config, memory)
    return expected_end(simulator, simulator.run(_LIMIT), program.words, config)


def expected_end(
    simulator: Simulator, outcome: Outcome, words: Sequence[int], config: PeConfig
) -> Expected:
    """The final state of an engine of ``config`` when ``simulator``, launched with ``words``, has
    come as far as ``outcome``."""
    return Expected(
        state="running" if outcome.state == "limit" else outcome.state,
        cause=outcome.cause,
        pc=outcome.pc,
        pc_words=pc_words(config),
        late=is_late(words, outcome),
        registers=list(simulator.registers),
        scratchpad=simulator.scratchpad.tobytes(),
    )


def pc_words(config: PeConfig) -> int:
    """Number of words modulo which the engine knows the address of a fault."""
    short = config.instruction_words < EXACT_PC_WORDS
    return config.instruction_words if short else 1 << PC_BITS


def is_late(words: Sequence[int], outcome: Outcome) -> bool:
    """Whether the engine reports the end ``outcome`` of the program ``words`` later, at another
    place."""
    word = words[outcome.pc] if 0 <= outcome.pc < len(words) else 0
    row = find(word)
    loading = row is not None and row.opcode == Opcode.LD_REG
    return loading and outcome.cause is FaultCause.REGISTER_RANGE


def differences(
    expected: Expected, end: EngineEnd, memories: Iterable[tuple[int, bytes, bytes]]
) -> list[str]:
    """Everything in which the two disagree, one line each; of bytes the first that differs.

    Registers and scratchpad count only where the engine's can be read.

    Parameters:
        memories: stretches of memory: first address, bytes of the engine, bytes expected.
    """
    lines = []
    if end.memory_error:
        lines.append("end: the engine reports a memory error, memory answered none")
    if (expected.state, expected.cause) != (end.state, end.cause):
        lines.append(
            f"end: engine {end.state.upper()} {end.cause.name} at {end.pc}, "
            f"expected {expected.state.upper()} {expected.cause.name} at {expected.pc}"
        )
    elif (
        expected.cause is not FaultCause.NONE
        and not expected.late
        and (expected.pc - end.pc) % expected.pc_words
    ):
        lines.append(f"program counter: engine {end.pc}, expected {expected.pc}")
    for number, (value, other) in enumerate(zip(end.registers, expected.registers, strict=False)):
        if value != other:
            lines.append(f"r{number}: engine {value:#018x}, expected {other:#018x}")
    if end.scratchpad:
        lines += _bytes("scratchpad", 0, end.scratchpad, expected.scratchpad)
    for start, mine, theirs in memories:
        lines += _bytes("memory", start, mine, theirs)
    return lines


def _bytes(space: str, start: int, actual: bytes, expected: bytes) -> list[str]:
    if actual == expected:
        return []
    places = [i for i, (a, b) in enumerate(zip(actual, expected, strict=True)) if a != b]
    first = places[0]
    return [
        f"{space} at {start + first:#x}: engine {actual[first : first + 8].hex(' ')}, "
        f"expected {expected[first : first + 8].hex(' ')} ({len(places)} bytes differ)"
    ]


def listing(program: RandomProgram, lines: Iterable[str]) -> str:
    """All about a program on which the two disagree, as text."""
    head = [
        f"seed {program.seed}, fault at its end: {program.fault or 'none'}",
        f"memory: {program.memory}",
        f"stop after: {program.stop_after}",
        f"reset before: {program.reset}, parameters {program.parameters:#x}, "
        f"PE {program.pe_index} of {program.pe_count}, vault {program.vault}, "
        f"slot {program.slot}",
        *lines,
        "",
    ]
    return "".join(f"; {line}\n" for line in head) + disassemble(program.words)
