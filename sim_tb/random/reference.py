"""The expected end of a program, and its differences from the engine's."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from isa.assembly.disassembler import disassemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.iss.simulator import Observer, Simulator
from isa.run import EngineEnd
from isa.table import Opcode, find
from pe.config import PeConfig
from pe.interface import EXACT_PC_WORDS, PC_BITS

from .random_program import RandomProgram

#: Limit of instructions, far above what a random program executes.
_LIMIT = 1_000_000


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
        **program.identity._asdict(),
        parameters=program.launch.parameters,
        **config.limits,
        scratchpad=program.scratchpad,
        observer=observer,
        count_saturation=count_saturation,
    )


def run_reference(program: RandomProgram, config: PeConfig, memory: DramImage) -> EngineEnd:
    """Run ``program`` on the instruction set simulator; it changes ``memory``."""
    simulator = simulator_of(program, config, memory)
    return expected_end(simulator, simulator.run(_LIMIT))


def expected_end(simulator: Simulator, outcome: EngineEnd) -> EngineEnd:
    """The end of an engine in the state of ``simulator`` at ``outcome``."""
    return replace(
        outcome,
        registers=list(simulator.registers),
        scratchpad=simulator.scratchpad.tobytes(),
    )


def same_place(expected: EngineEnd, pc: int, words: Sequence[int], config: PeConfig) -> bool:
    """Whether an engine of ``config`` with the program ``words`` may report the fault ``expected``
    at ``pc``: it knows the address only modulo a number of words, and reports a loaded value that
    does not fit a register later, at another place."""
    word = words[expected.pc] if 0 <= expected.pc < len(words) else 0
    row = find(word)
    if expected.cause is FaultCause.REGISTER_RANGE and row and row.opcode == Opcode.LD_REG:
        return True
    short = config.instruction_words < EXACT_PC_WORDS
    return (expected.pc - pc) % (config.instruction_words if short else 1 << PC_BITS) == 0


def differences(
    expected: EngineEnd,
    end: EngineEnd,
    words: Sequence[int],
    config: PeConfig,
    memories: Iterable[tuple[int, bytes, bytes]] = (),
) -> list[str]:
    """All differences, one line each; for bytes, the first that differs.

    Registers and scratchpad count only if the engine's can be read.

    Parameters:
        words: the program, of an engine of ``config``.
        memories: ranges of memory: first address, the engine's bytes, the expected bytes.
    """
    lines = []
    if end.memory_error:
        lines.append("end: the engine reports a memory error, memory answered none")
    if (expected.state, expected.cause) != (end.state, end.cause):
        lines.append(
            f"end: engine {end.state.upper()} {end.cause.name} at {end.pc}, "
            f"expected {expected.state.upper()} {expected.cause.name} at {expected.pc}"
        )
    elif expected.cause is not FaultCause.NONE and not same_place(expected, end.pc, words, config):
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
    """A report on a program on which the two disagree."""
    pe_index, vault, slot, pe_count = program.identity
    head = [
        f"seed {program.seed}, fault at its end: {program.fault or 'none'}",
        f"memory: {program.memory}",
        f"stop after: {program.launch.stop_after}",
        f"reset before: {program.reset}, parameters {program.launch.parameters:#x}, "
        f"PE {pe_index} of {pe_count}, vault {vault}, slot {slot}",
        *lines,
        "",
    ]
    return "".join(f"; {line}\n" for line in head) + disassemble(program.words)
