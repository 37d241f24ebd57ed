"""Hazards as the compiled simulator finds them, against those of :class:`isa.hazards.HazardLog`."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from isa.assembly.assembler import assemble
from isa.compiled.simulator import CheckingSimulator
from isa.hazards import HazardLog
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.program import Program
from isa.table import BY_KEY, INSTRUCTIONS, Instruction, Opcode, Unit, encode
from isa.timing import VECTOR_LATENCY, Hazard, HazardKind
from microkernels.suite import Application, suite
from pe.config import ALL_INSTRUCTIONS, PeConfig
from sim_tb.random.programs import random_config, random_program
from sim_tb.random.random_program import RandomProgram
from sim_tb.random.reference import simulator_of
from soc.generate.presets import preset

WHOLE = PeConfig(instructions=ALL_INSTRUCTIONS)
DRAIN, GO_ON = encode(BY_KEY["v.drain"], ()), encode(BY_KEY["jmp"], (1,))
#: Rows that hazards concern.
VECTORS = [row for row in INSTRUCTIONS if row.unit is Unit.VECTOR]
TRANSFERS = [row for row in INSTRUCTIONS if row.unit is not Unit.VECTOR and row.scratchpad]


def hurried(words: Sequence[int]) -> tuple[int, ...]:
    """The words of a program with jumps in place of its drains."""
    return tuple(GO_ON if word == DRAIN else word for word in words)


def compare(
    plain: Simulator, log: HazardLog, checking: Simulator, steps: Sequence[int]
) -> list[Hazard]:
    """The hazards that both simulators have found after ``steps``; equal after each."""
    assert isinstance(checking, CheckingSimulator)
    for step in steps:
        assert checking.run(step) == plain.run(step)
        assert checking.hazards == log.hazards
    assert checking.registers == plain.registers
    assert checking.scratchpad.tobytes() == plain.scratchpad.tobytes()
    assert checking.visits == plain.visits
    return checking.hazards


def run(
    program: Program | Sequence[int],
    registers: Sequence[int] = (),
    steps: Sequence[int] = (10_000,),
) -> list[Hazard]:
    """The hazards of a program, launched with the first ``registers``."""
    log = HazardLog()
    with DramImage(1 << 16) as memory, DramImage(1 << 16) as other:
        plain = Simulator(program, memory, observer=log.observer())
        checking = CheckingSimulator(program, other)
        for simulator in (plain, checking):
            simulator.registers[: len(registers)] = registers
        found = compare(plain, log, checking, steps)
        assert plain.run(0).state != "running"
    return found


@contextmanager
def _memory(program: RandomProgram, config: PeConfig) -> Iterator[DramImage]:
    with DramImage(1 << config.address_bits) as memory:
        for address, content in program.windows:
            memory.write(address, content)
        yield memory


def _with_hazards(config: PeConfig, seeds: range) -> int:
    """How many of the random programs have some."""
    found = 0
    for seed in seeds:
        program = random_program(seed, config)
        launch = replace(program.launch, program=Program(hurried(program.words)))
        program = replace(program, launch=launch)
        log = HazardLog()
        with _memory(program, config) as memory, _memory(program, config) as other:
            found += bool(
                compare(
                    simulator_of(program, config, memory, observer=log.observer()),
                    log,
                    simulator_of(program, config, other, CheckingSimulator),
                    (0, 1, seed % 40, 100_000, 5),
                )
            )
    return found


def test_random_programs_without_drains() -> None:
    assert _with_hazards(WHOLE, range(150)) >= 75


@pytest.mark.parametrize("seed", range(5))
def test_random_engines(seed: int) -> None:
    _with_hazards(random_config(seed), range(60))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, *range(19)])
def test_ten_thousand_random_programs(seed: int | None) -> None:
    config = WHOLE if seed is None else random_config(1000 + seed)
    _with_hazards(config, range(6_000_000, 6_000_500))


def _crowded(seed: int) -> tuple[Program, list[int]]:
    """A loop of instructions that meet in few bytes of the scratchpad, and registers at its start:
    addresses in r8 to r23, lengths in r24 to r31, settings in r32 to r47, memory at r48."""
    rng = random.Random(seed)
    registers = [0] * 64
    registers[8:24] = [rng.randrange(rng.choice((40, 300))) for _ in range(16)]
    registers[24:32] = [rng.randrange(24) for _ in range(8)]
    registers[32:48] = [rng.choice((1, 2, 8, 16, rng.randint(1, 40))) for _ in range(16)]
    registers[49] = 4

    def operands(row: Instruction) -> str:
        if row.opcode in (Opcode.LD_SRAM, Opcode.ST_SRAM):
            far, near = "r48", f"r{rng.randrange(8, 24)}"
            first = (near, far) if row.loads else (far, near)
            return ", ".join((*first, f"r{rng.randrange(24, 32)}"))
        return ", ".join(f"r{rng.randrange(8, 24)}" for _ in row.operands)

    lines = ["again:"]
    for _ in range(rng.randint(1, 25)):
        chance = rng.random()
        if chance < 0.08:
            lines.append("v.drain")
        elif chance < 0.25:
            lines.append(f"set.{rng.choice(('vl', 'vl', 'mr'))} r{rng.randrange(32, 48)}")
        elif chance < 0.35:
            moved = f"r{rng.randrange(8, 24)}"
            lines.append(f"add {moved}, {moved}, #{rng.choice((0, 2, 8, 30))}")
        else:
            row = rng.choice(VECTORS if chance < 0.75 else TRANSFERS)
            assert row.width is not None
            lines.append(f"{row.mnemonic} [{row.width.bits}-bit] {operands(row)}")
    lines += ["add r49, r49, #-1", "bne r49, r0, again", "halt"]
    return assemble("\n".join(lines)), registers


def test_crowded_programs() -> None:
    """Each kind of hazard is met in many of them, and several kinds together."""
    met = dict.fromkeys(HazardKind, 0)
    for seed in range(400):
        hazards = run(*_crowded(seed), (7, 20, 10_000))
        for kind in {hazard.what for hazard in hazards}:
            met[kind] += 1
    assert min(met.values()) >= 50


@pytest.mark.parametrize("row", VECTORS, ids=lambda row: row.key)
def test_each_vector_instruction(row: Instruction) -> None:
    """Bytes of its result are read, its operands are overwritten, and it reads a result."""
    assert row.width is not None
    one = f"{row.mnemonic} [{row.width.bits}-bit] r9, r10"
    if len(row.operands) == 3:
        one += ", r11"
    kinds = set()
    for vl, mr, place in ((1, 1, 0), (5, 3, 1), (40, 2, 6), (16, 8, 60), (30, 6, 200)):
        registers = [0] * 64
        registers[8:17] = [300, 1000, 2000, 3000, vl, mr, place, 1, 17]
        program = assemble(
            f"""
            set.vl r12
            set.mr r13
            add r17, r9, r14
            add r18, r10, r14
            add r19, r11, r14
            {one}
            v.s.add [8-bit] r8, r8, r17
            {one}
            st.sram [8-bit] r0, r17, r16
            {one}
            ld.sram [8-bit] r18, r0, r15
            ld.sram [8-bit] r19, r0, r15
            ld.sram [8-bit] r17, r0, r16
            v.v.add [16-bit] r18, r8, r8
            {one}
            v.drain
            v.v.max [8-bit] r19, r8, r8
            {one}
            halt
            """
        )
        kinds |= {hazard.what for hazard in run(program, registers)}
    assert kinds >= set(HazardKind) - {HazardKind.OWN_OPERAND}


@pytest.mark.parametrize("application", suite().values(), ids=lambda item: item.name)
def test_kernels_with_and_without_drains(application: Application) -> None:
    config = preset(application.preset)
    for job in application.jobs:
        for words in (tuple(job.program.words), hurried(job.program.words)):
            log = HazardLog()
            memories = [DramImage(1 << config.address_bits) for _ in range(2)]
            with memories[0] as memory, memories[1] as other:
                job.prepare(memory)
                job.prepare(other)
                observed = Simulator(
                    words,
                    memory,
                    parameters=job.parameters,
                    **config.limits,
                    observer=log.observer(),
                )
                checking = CheckingSimulator(
                    words, other, parameters=job.parameters, **config.limits
                )
                found = compare(observed, log, checking, (100, 200_000))
            assert not found or words != tuple(job.program.words)


SET = "mov r10, #16\nset.vl r10\nmov r11, #512\nmov r12, #1024\n"


def test_a_store_that_comes_too_early() -> None:
    early = "v.v.add [16-bit] r11, r12, r12\nst.sram [16-bit] r0, r11, r10\n"
    (hazard,) = run(assemble(SET + early + "halt\n"))
    assert hazard == Hazard(
        pc=5,
        key="st.sram[16]",
        what=HazardKind.STORE,
        address=543,
        other=4,
        other_key="v.v.add[16]",
        distance=-3,
        needed=VECTOR_LATENCY,
    )
    assert not run(assemble(SET + early.replace("st.sram", "v.drain\nst.sram") + "halt\n"))


def test_a_hazard_in_a_loop_is_one_with_its_smallest_distance() -> None:
    loop = (
        "mov r20, #3\nloop: v.v.add [16-bit] r11, r12, r12\nst.sram [16-bit] r0, r11, r10\n"
        "add r20, r20, #-1\nbne r20, r0, loop\nhalt\n"
    )
    (hazard,) = run(assemble(SET + loop), steps=(6, 1, 1, 1, 1, 1, 100))
    assert (hazard.times, hazard.distance) == (3, -7)


def test_what_faults_does_nothing() -> None:
    beyond = "mov r13, #4090\nv.v.add [16-bit] r13, r13, r12\n"
    assert not run(assemble(SET + beyond + "halt\n"))
    late = "v.v.add [16-bit] r11, r12, r12\nmov r13, #4090\nst.sram [16-bit] r0, r13, r10\nhalt\n"
    assert not run(assemble(SET + late))


def test_a_result_over_its_own_operand() -> None:
    (hazard,) = run(assemble(SET + "mov r13, #1026\nv.v.add [16-bit] r13, r12, r12\nhalt\n"))
    assert (hazard.what, hazard.address) == (HazardKind.OWN_OPERAND, 1026)
    assert (hazard.distance, hazard.needed) == (None, None)
