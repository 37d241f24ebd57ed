"""Properties proved of a program hold in every run of it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.program import Program
from pe.config import PeConfig
from sim_tb.random.programs import random_program
from sim_tb.random.random_program import RandomProgram
from synth.analysis import values
from synth.analysis.facts import Facts
from synth.analysis.interval import ANY, bounds
from synth.analysis.needs import flow
from synth.analysis.profile import Profile
from synth.analysis.values import analyse
from synth.errors import TrimError
from tests.synth.trimming import profile_to_end, trim

SMALL = PeConfig(scratchpad_bytes=1024, address_bits=20)
WILD = {"parameters": bounds(ANY)}
#: Steps, forks of a branch, and attempts: as built; soon joined everywhere; joined at branches.
EFFORTS = [(250_000, 2_000, 6), (40, 1, 1), (400, 2, 6)]


@contextmanager
def memory_of(program: RandomProgram) -> Iterator[DramImage]:
    with DramImage(1 << SMALL.address_bits) as image:
        for address, content in program.windows:
            image.write(address, content)
        yield image


def is_sound(random: RandomProgram) -> bool:
    """Whether all words that control flow can reach are instructions: words after the end can have
    any value."""
    try:
        flow(Program(random.words))
    except TrimError:
        return False
    return True


def seen(random: RandomProgram) -> Profile:
    with memory_of(random) as image:
        return profile_to_end(
            Program(random.words),
            image,
            SMALL,
            parameters=random.launch.parameters,
            **random.identity._asdict(),
        )


def assert_within(seen: Facts, proved: Facts) -> None:
    assert seen.executed <= proved.executed
    assert seen.taken <= proved.taken
    assert seen.passed <= proved.passed
    for did, can in ((seen.written, proved.written), (seen.settings, proved.settings)):
        for address, (low, high) in did.items():
            assert can[address][0] <= low
            assert high <= can[address][1]
    for reached, end in ((seen.scratchpad, proved.scratchpad), (seen.dram, proved.dram)):
        assert all(end[address] >= byte for address, byte in reached.items())
    assert all(proved.alignment[address] <= step for address, step in seen.alignment.items())


@pytest.mark.parametrize("effort", EFFORTS)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_proofs_contain_every_run(effort: tuple[int, int, int], seed: int) -> None:
    random = random_program(seed, SMALL)
    assume(is_sound(random))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in zip(("_STEPS", "_FORKS", "_ATTEMPTS"), effort, strict=True):
            patch.setattr(values, name, value)
        patch.setattr(values, "_STEADY_STEPS", effort[0])
        proved = analyse(Program(random.words), SMALL, WILD)
    assert_within(seen(random).facts, proved.facts)


@given(seed=st.integers(0, 10**6), profiled=st.booleans())
@settings(max_examples=80, deadline=None, derandomize=True)
def test_trimmed_engine_does_the_same_on_the_simulator(seed: int, profiled: bool) -> None:
    random = random_program(seed, SMALL)
    program = Program(random.words)
    assume(is_sound(random))
    # A launch names an address of the memory, and 0 where nothing reads it.
    reads = analyse(program, SMALL, {}).reads_parameters
    parameters = random.launch.parameters % (1 << SMALL.address_bits) if reads else 0
    with memory_of(random) as image:
        profile = profile_to_end(program, image, SMALL, parameters=parameters)
    profiles = [profile] if profiled else []
    config = trim(program, SMALL, profiles, allow_uncovered=True, basis="tight")
    ends = []
    for engine in (SMALL, config):
        with memory_of(random) as image:
            simulator = Simulator(
                program,
                image,
                parameters=parameters,
                **engine.limits,
            )
            outcome = simulator.run(1_000_000)
            ends.append(
                (
                    # What would have been outside both may be outside in more than one way.
                    (outcome.state, outcome.pc, outcome.executed),
                    simulator.registers + [0] * (SMALL.registers - engine.registers),
                    simulator.scratchpad.tobytes().ljust(SMALL.scratchpad_bytes, b"\0"),
                    image.read(0, image.size),
                )
            )
    assert ends[0] == ends[1]


def facts_of(text: str, config: PeConfig = SMALL) -> Facts:
    return analyse(assemble(text), config, {}).facts


def test_loops_with_constants_are_followed() -> None:
    facts = facts_of(
        "mov.imm r6, #0\nmov.imm r7, #10\nmov.imm r8, #8\n"
        "top: ld.sram [8-bit] r6, r6, r8\nadd r6, r6, #100\nadd r7, r7, #-1\n"
        "bne r7, r0, top\nhalt\n"
    )
    assert facts.scratchpad[3] == facts.dram[3] == 908
    assert facts.written[4] == (100, 1000)


def test_loops_as_long_as_data_says_end_where_the_scratchpad_does() -> None:
    facts = facts_of(
        "ld.reg [16-bit] r7, r0\nmov.imm r6, #0\nmov.imm r8, #8\n"
        "top: ld.sram [8-bit] r6, r6, r8\nadd r6, r6, #100\nadd r7, r7, #-1\n"
        "blt r0, r7, top\nhalt\n"
    )
    # Byte 1000 is the last address that does not fault.
    assert facts.scratchpad[3] == 1008
    assert facts.written[4] == (100, 1100)


def test_loops_that_count_far_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "_STEADY_STEPS", 250_000)
    result = analyse(
        assemble(
            "mov.imm r7, #0\nmov.imm r8, #500000\n"
            "top: and r6, r7, #127\nadd r7, r7, #1\nst.reg [8-bit] r6, r0\nblt r7, r8, top\nhalt\n"
        ),
        SMALL,
        {},
    )
    assert not result.exact
    assert result.facts.written[2] == (0, 127)
    assert result.facts.written[3] == (1, 500000)
    assert result.facts.dram[4] == 128


def test_waiting_for_a_flag_ends() -> None:
    result = analyse(assemble("top: ld.reg [64-bit] r6, r5\nbeq r6, r0, top\nhalt\n"), SMALL, {})
    assert result.exact
    assert result.facts.taken == result.facts.passed == {1}
    assert result.reads_parameters


def test_different_data_in_each_turn_does_not_multiply_the_ways() -> None:
    body = "ld.reg [8-bit] r6, r7\nblt r6, r0, skip{n}\nmov r8, r6\nskip{n}: add r7, r7, #1\n"
    text = "".join(body.format(n=n) for n in range(200))
    result = analyse(assemble(f"mov.imm r7, #0\n{text}halt\n"), SMALL, {})
    assert result.exact
    assert max(result.facts.dram.values()) == 200


@pytest.mark.parametrize(
    "text",
    [
        "mov.imm r6, #2000\nld.sram [8-bit] r6, r0, r0\nsub r6, r6, r6\nhalt\n",
        "mov.imm r6, #-1\nld.sram [8-bit] r0, r0, r6\nsub r6, r6, r6\nhalt\n",
        "mov.imm r6, #0\nset.vl r6\nsub r6, r6, r6\nhalt\n",
        "mov.imm r6, #3\nld.reg [16-bit] r6, r6\nsub r6, r6, r6\nhalt\n",
        "mov.imm r6, #200\nset.vl r6\nv.v.add [64-bit] r0, r0, r0\nsub r6, r6, r6\nhalt\n",
    ],
)
def test_nothing_runs_behind_a_sure_fault(text: str) -> None:
    program = assemble(text)
    sub = len(program.words) - 2
    assert sub not in analyse(program, SMALL, {}).facts.executed
