"""Random programs that meet memory errors and stops, and what the comparison of them finds."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from hdl.ports import COLUMN_BYTES
from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.run import EngineEnd, Launch
from pe.config import PeConfig
from sim_tb.cosim.engine import CosimError, PeSimulation
from sim_tb.harness.engine import EngineIdentity
from sim_tb.harness.memory import MemoryBehaviour
from sim_tb.random.comparison import check_programs
from sim_tb.random.interrupted import interruption
from sim_tb.random.programs import random_config, random_program
from sim_tb.random.random_program import RandomProgram, contents
from sim_tb.random.reference import simulator_of
from tests.small_engine import SMALL

CONFIG = PeConfig()
NARROW = random_config(11)
NONE = FaultCause.NONE

#: Stores 1, 2 and 3 in columns of their own, with a vector instruction and a load between them.
TEXT = """
    mov r6, #64
    mov r7, #1
    st.reg [64-bit] r6, r7
    add r6, r6, #32
    mov r7, #2
    st.reg [64-bit] r6, r7
    ld.reg [64-bit] r8, r6
    v.v.add [16-bit] r6, r6, r6
    add r6, r6, #32
    mov r7, #3
    st.reg [64-bit] r6, r7
    halt
"""
STORES = (2, 5, 10)
#: Address of each store.
PLACES = (64, 96, 128)


@pytest.mark.parametrize(("config", "programs"), [(CONFIG, 300), (SMALL, 100), (NARROW, 100)])
def test_interrupted_programs_leave_what_a_place_in_them_allows(
    config: PeConfig, programs: int
) -> None:
    report = check_programs(config, programs=programs, seed=10_000, disturbed=0.75)
    assert report.different == ()
    assert report.disturbed > programs / 2
    assert report.early > programs / 8
    assert report.memory_errors >= programs / 100
    assert report.full > 0 or config.instruction_words < 1024


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "programs"),
    [(CONFIG, 5000), (SMALL, 3000), (NARROW, 3000)]
    + [(random_config(seed), 300) for seed in range(8)],
)
def test_more_interrupted_programs(config: PeConfig, programs: int) -> None:
    report = check_programs(config, programs=programs, seed=2_000_000, disturbed=0.75)
    assert report.different == ()


def test_the_host_stops_an_engine_when_a_job_says_so() -> None:
    program = assemble("loop: add r6, r6, #1\njmp loop\n")
    with PeSimulation(CONFIG) as simulation, DramImage(1 << CONFIG.address_bits) as image:

        def count(stop_after: int) -> int:
            launch = Launch(program=program, max_cycles=20_000, stop_after=stop_after)
            result = simulation.run(launch, image, reset=stop_after % 2 == 0).engine
            assert (result.state, result.cause) == ("halted", NONE)
            assert stop_after <= result.elapsed_cycles < stop_after + 200
            return result.registers[6]

        assert [count(cycles) for cycles in (0, 1, 30, 63)] == [0, 0, 0, 0]
        # Five cycles a round.
        assert count(10_065) - count(5065) == 1000
        # A program that ends before is not touched, nor is the next one.
        halts = Launch(program=assemble("halt\n"), max_cycles=500, stop_after=400)
        assert simulation.run(halts, image).elapsed_cycles < 200
        endless = Launch(program=program, max_cycles=500)
        with pytest.raises(CosimError, match="still running after 500 cycles"):
            simulation.run(endless, image, reset=False)
        with pytest.raises(CosimError, match="stop_after"):
            simulation.run(replace(endless, stop_after=-1), image)


def test_disturbances_are_of_all_kinds_and_leave_the_others_alone() -> None:
    kinds: Counter[tuple[bool, bool]] = Counter()
    for seed in range(300):
        program = random_program(seed, CONFIG, 0.5)
        start, end = program.memory.errors
        assert start % COLUMN_BYTES == end % COLUMN_BYTES == 0
        kinds[end > start, program.launch.stop_after is not None] += 1
        plain = random_program(seed, CONFIG)
        assert (plain.memory.errors, plain.launch.stop_after) == ((0, 0), None)
        assert plain.words == program.words
        assert plain.windows == program.windows
    assert min(kinds[True, False], kinds[False, True], kinds[True, True]) > 15
    assert 100 < kinds[False, False] < 200


def test_some_programs_fill_the_instruction_buffer_to_the_last_word() -> None:
    for config in (CONFIG, replace(CONFIG, instruction_words=256, address_bits=16)):
        ends: Counter[str] = Counter()
        for seed in range(500):
            program = random_program(seed, config)
            if len(program.words) == config.instruction_words:
                ends[program.fault] += 1
        assert ends[""] > 2
        assert len(ends) > 2


def test_contents_are_often_extreme() -> None:
    random = Random(1)
    found = [contents(random, 512) for _ in range(200)]
    assert all(len(content) == 512 for content in found)
    extreme = [c for c in found if c.count(b"\x80") + c.count(b"\x7f") > 60]
    assert 30 < len(extreme) < 100


class Run:
    """State of an engine after the first instructions of :data:`TEXT`."""

    def __init__(
        self,
        images: tuple[DramImage, DramImage],
        *,
        errors: tuple[int, int] = (0, 0),
        stop_after: int | None = None,
    ) -> None:
        self.start, self.image = images
        self.program = RandomProgram(
            seed=0,
            launch=Launch(program=assemble(TEXT), stop_after=stop_after),
            windows=((0, bytes(256)),),
            scratchpad=bytes(range(256)) * 16,
            identity=EngineIdentity(pe_index=1),
            reset=True,
            fault="",
            memory=MemoryBehaviour(errors=errors),
        )

    def left(self, executed: int, **changes: object) -> EngineEnd:
        self.image.write(0, bytes(256))
        simulator = simulator_of(self.program, CONFIG, self.image)
        simulator.run(executed)
        values = {"state": "halted", "cause": NONE, "pc": 0, "elapsed_cycles": 100, **changes}
        return EngineEnd(
            registers=list(simulator.registers),
            scratchpad=simulator.scratchpad.tobytes(),
            **values,  # type: ignore[arg-type]
        )

    def lines(self, found: EngineEnd) -> tuple[str, ...]:
        self.start.write(0, bytes(256))
        return tuple(interruption(self.program, CONFIG, found, self.image, self.start)[0])


@pytest.fixture
def images():
    with DramImage(1 << 12) as start, DramImage(1 << 12) as image:
        yield start, image


def test_a_stop_may_come_at_any_place_but_leaves_no_other_state(images) -> None:
    run = Run(images, stop_after=50)
    length = len(run.program.words)
    for executed in range(length + 1):
        assert run.lines(run.left(executed)) == ()
        # It came too late to matter.
        early = run.left(executed, elapsed_cycles=49)
        assert bool(run.lines(early)) == (executed < length - 1)
    found = run.left(4)
    found.registers[9] = 1
    assert "no place" in run.lines(found)[0]
    found = run.left(4)
    assert run.lines(replace(found, scratchpad=bytes(4096)))
    assert run.lines(replace(found, memory_error=True))
    assert run.lines(replace(found, state="faulted", cause=FaultCause.MISALIGNED))
    run.image.write(200, b"x")
    assert "no place" in run.lines(found)[0]


def test_without_a_stop_only_the_end_will_do(images) -> None:
    run = Run(images, errors=(0, 32))
    length = len(run.program.words)
    # The halt changes nothing.
    assert [not run.lines(run.left(executed)) for executed in range(length + 1)] == [
        executed >= length - 1 for executed in range(length + 1)
    ]


def test_an_error_must_be_reported_at_a_place_that_waited(images) -> None:
    errors = (PLACES[1], PLACES[1] + COLUMN_BYTES)
    run = Run(images, errors=errors)
    fault = {"state": "faulted", "cause": FaultCause.MEMORY_ERROR, "memory_error": True}

    def left(executed: int, **changes: object) -> EngineEnd:
        found = run.left(executed, **{**fault, **changes})
        run.image.write(PLACES[1], bytes(8))
        return found

    after = STORES[1] + 1
    assert run.lines(left(after, pc=after)) == ()
    assert run.lines(left(after, pc=after - 1)) == ()
    assert run.lines(left(after, pc=after + 2))
    # Not before the access that fails, not without the report, not as if nothing had happened.
    assert run.lines(left(after - 2, pc=after - 2))
    assert run.lines(left(after, pc=after, memory_error=False))
    assert run.lines(left(len(run.program.words), state="halted", cause=NONE))
    # Stores that failed are not written.
    found = left(after, pc=after)
    run.image.write(PLACES[1], b"\x02")
    assert run.lines(found)


def test_after_an_error_what_waited_is_left_out_and_named(images) -> None:
    errors = (PLACES[1], PLACES[1] + COLUMN_BYTES)
    run = Run(images, errors=errors)
    fault = {"state": "faulted", "cause": FaultCause.MEMORY_ERROR, "memory_error": True}
    # Up to and with the scalar instruction after the load, whose value is unknown.
    executed = STORES[1] + 2
    found = run.left(executed, pc=executed, **fault)
    run.image.write(PLACES[1], bytes(8))
    found.registers[8] = 0x1234
    assert run.lines(found) == ()
    # The vector instruction waited, the scalar ones after it did not.
    with_vector = run.left(STORES[2], pc=STORES[2], **fault)
    run.image.write(PLACES[1], bytes(8))
    dropped = replace(with_vector, scratchpad=run.program.scratchpad, pc=executed)
    assert run.lines(dropped) == ()
    assert run.lines(replace(dropped, pc=executed + 1))
    assert run.lines(with_vector) == ()
    # The store after it can't have been done without it.
    later = run.left(STORES[2] + 1, pc=executed, **fault)
    run.image.write(PLACES[1], bytes(8))
    assert run.lines(replace(later, scratchpad=run.program.scratchpad))
