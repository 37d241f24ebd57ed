"""Programs on the Verilog of one engine."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.program import Program
from isa.run import Launch, RunResult
from pe.config import PeConfig
from pe.interface import PeCounter
from sim_tb.cosim.engine import (
    CosimError,
    MemoryBehaviour,
    PeSimulation,
    TooLong,
    stop_cycles,
)
from sim_tb.harness.engine import EngineIdentity
from sim_tb.random.comparison import RandomReport, check_programs
from sim_tb.random.programs import random_config
from sim_tb.random.random_program import RandomProgram
from sim_tb.runner.build import BuildError
from tests.small_engine import SMALL

from .computing import (
    computing_program,
    plain_program,
    products_of_one_bit,
    shifts_by_each_amount,
    vectors_beyond,
    words_beside_instructions,
)

CONFIG = PeConfig()
#: Narrow registers, low limits and short program counters, with most instructions.
NARROW = random_config(11)

SUM = assemble("""
    mov r10, #4
    set.vl r10
    mov r11, #0
    mov r12, #8
    mov r13, #16
    mov r14, #4096
    ld.sram [16-bit] r11, r14, r10
    v.v.add [16-bit] r13, r11, r12
    v.drain
    st.sram [16-bit] r5, r13, r10
    halt
""")


@pytest.fixture
def image() -> Iterator[DramImage]:
    with DramImage(1 << CONFIG.address_bits) as made:
        yield made


@pytest.fixture(scope="module")
def simulation() -> Iterator[PeSimulation]:
    with PeSimulation(CONFIG) as running:
        yield running


def test_one_program_leaves_what_it_should(simulation: PeSimulation, image: DramImage) -> None:
    image.array(4096, 4, np.int16)[:] = (1, -2, 30000, -30000)
    scratchpad = bytes(8) + np.array((10, 20, 30000, -30000), np.int16).tobytes() + bytes(4080)
    result = simulation.run(
        Launch(program=SUM, max_cycles=10_000, parameters=1 << 32),
        image,
        identity=EngineIdentity(pe_index=9, vault=2, slot=1, pe_count=128),
        scratchpad=scratchpad,
    ).engine
    assert (result.state, result.cause) == ("halted", FaultCause.NONE)
    expected = np.array((11, 18, 32767, -32768), np.int16).tobytes()
    assert image.read(1 << 32, 8) == expected
    assert len(result.scratchpad) == CONFIG.scratchpad_bytes
    assert result.scratchpad[16:24] == expected
    assert result.scratchpad[:8] == image.read(4096, 8)
    assert result.registers[:6] == [0, 9, 2, 1, 128, 1 << 32]
    assert result.registers[10:15] == [4, 0, 8, 16, 4096]
    counters = result.counters
    assert set(counters) == {item.name for item in PeCounter}
    assert counters["ISSUED_SCALAR"] == 5
    assert counters["ISSUED_VECTOR"] == 1
    assert counters["ISSUED_LOAD_STORE"] == 2
    assert counters["ISSUED_CONTROL"] == 3
    assert (counters["BYTES_LOADED"], counters["BYTES_STORED"]) == (8, 8)
    stalls = [value for name, value in counters.items() if name.startswith(("ISSUED", "STALL"))]
    assert sum(stalls) == counters["CYCLES"] == result.cycles < result.elapsed_cycles


def test_latency_of_the_memory_is_seen_by_a_program(
    simulation: PeSimulation, image: DramImage
) -> None:
    program = assemble("mov r8, #64\nld.reg [64-bit] r9, r8\nadd r9, r9, #1\nhalt\n")
    image.write(64, bytes((41,)))
    launch = Launch(program=program, max_cycles=10_000)
    cycles = []
    for latency in (1, 101):
        result = simulation.run(launch, image, memory=MemoryBehaviour(latency=latency)).engine
        assert result.registers[9] == 42
        cycles.append(result.counters["CYCLES"])
    assert cycles[1] - cycles[0] == 100


def test_faults_are_reported_with_their_place(simulation: PeSimulation, image: DramImage) -> None:
    program = assemble("mov r8, #3\nst.reg [32-bit] r8, r8\nhalt\n")
    result = simulation.run(Launch(program=program, max_cycles=10_000), image).engine
    assert (result.state, result.cause, result.pc) == ("faulted", FaultCause.MISALIGNED, 1)


def test_memory_error_stops_the_engine(simulation: PeSimulation, image: DramImage) -> None:
    memory = MemoryBehaviour(errors=(4096, 4097))
    result = simulation.run(Launch(program=SUM, max_cycles=10_000), image, memory=memory).engine
    assert (result.state, result.cause) == ("faulted", FaultCause.MEMORY_ERROR)


def test_endless_program_is_an_error_and_the_next_one_runs(
    simulation: PeSimulation, image: DramImage
) -> None:
    endless = Launch(program=assemble("loop: jmp loop\n"), max_cycles=1000)
    job = simulation.job(Launch(program=SUM, max_cycles=1000, parameters=64), image)
    expected, first, second = simulation.run_many(
        [job, simulation.job(endless, image), replace(job, reset=False)]
    )
    assert isinstance(first, TooLong)
    assert str(first).startswith("the program: still running after 1,000 cycles, perhaps in an")
    assert isinstance(expected, RunResult)
    assert isinstance(second, RunResult)
    assert second.engine.halted
    assert second.engine.counters == expected.engine.counters
    # A reset takes cycles, but not of a run.
    assert second.engine.registers == expected.engine.registers
    with pytest.raises(TooLong, match="still running after 1,000 cycles"):
        simulation.run(endless, image)


def test_many_programs_in_one_simulator(simulation: PeSimulation, image: DramImage) -> None:
    jobs = [
        simulation.job(
            Launch(program=assemble(f"mov r8, #{number}\nhalt\n"), max_cycles=1000), image
        )
        for number in range(5)
    ]
    values = [
        result.engine.registers[8]
        for result in simulation.run_many(jobs)
        if isinstance(result, RunResult)
    ]
    assert values == list(range(5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"program": Program((0,) * 1025)},
            "1025 words does not fit the instruction buffer of 1024",
        ),
        ({"scratchpad": bytes(5)}, "contents of 5 bytes given for one of 4096"),
        ({"max_cycles": 0}, "max_cycles must be from 1"),
    ],
)
def test_launches_that_can_not_run_are_refused(
    simulation: PeSimulation, image: DramImage, change: dict[str, object], message: str
) -> None:
    scratchpad = change.pop("scratchpad", None)
    launch = replace(Launch(program=SUM, max_cycles=1000), **change)  # type: ignore[arg-type]
    with pytest.raises(CosimError, match=message):
        simulation.run(launch, image, scratchpad=scratchpad)  # type: ignore[arg-type]


@pytest.mark.parametrize("parameters", [-1, 1 << 64])
def test_parameters_are_not_cut_to_64_bits(
    simulation: PeSimulation, image: DramImage, parameters: int
) -> None:
    with pytest.raises(CosimError, match=f"parameters must be from 0 to .*, not {parameters}"):
        simulation.run(Launch(program=SUM, max_cycles=1000, parameters=parameters), image)


@pytest.mark.parametrize("name", ["pe_index", "vault", "slot", "pe_count"])
def test_identities_are_not_cut_to_16_bits(
    simulation: PeSimulation, image: DramImage, name: str
) -> None:
    launch = Launch(program=SUM)
    for value in (-1, 65536):
        with pytest.raises(CosimError, match=f"{name} must be from 0 to 65535, not {value}"):
            simulation.run(launch, image, identity=EngineIdentity(**{name: value}))


@pytest.mark.parametrize(
    "memory",
    [
        MemoryBehaviour(latency=1_000_000, extra_latency=1_000_000),
        MemoryBehaviour(bandwidth=1, stall=0.99, gap=0.99),
    ],
)
def test_a_slow_memory_makes_no_engine_hang(memory: MemoryBehaviour) -> None:
    """Every entry of the ARC may wait for a transfer of the whole scratchpad."""
    columns = CONFIG.arc_entries * CONFIG.scratchpad_bytes // 32
    slowest = columns // CONFIG.load_store_queue * (memory.latency + memory.extra_latency)
    beats = columns * 4 * 256 // memory.bandwidth / ((1 - memory.stall) * (1 - memory.gap))
    assert stop_cycles(CONFIG, memory) > max(slowest, beats)
    assert stop_cycles(CONFIG, MemoryBehaviour()) < 1_000_000


def test_waveforms_have_two_formats() -> None:
    for name in ("wave.txt", "wave"):
        with pytest.raises(BuildError, match="waveforms are written as vcd or fst"):
            PeSimulation(CONFIG, trace=Path(name))


def test_speed(simulation: PeSimulation, image: DramImage) -> None:
    """At least 100,000 cycles a second with the vector unit and the memory busy."""
    program = assemble("""
        mov r8, #256
        set.vl r8
        mov r9, #4
        set.mr r9
        mov r10, #0
        mov r11, #2048
        mov r12, #3000
        mov r13, #3100
        mov r14, #1000
    loop:
        m.v.mul.add [16-bit] r12, r10, r11
        ld.sram [8-bit] r13, r10, r8
        st.sram [8-bit] r8, r13, r8
        add r14, r14, #-1
        bne r14, r10, loop
        halt
    """)
    result = simulation.run(Launch(program=program, max_cycles=1_000_000), image)
    assert result.engine.counters["VECTOR_BUSY"] == 256_000
    assert result.cycles_per_second >= 100_000


@pytest.mark.parametrize(("config", "programs"), [(CONFIG, 300), (SMALL, 200), (NARROW, 200)])
def test_random_programs(config: PeConfig, programs: int) -> None:
    report = check_programs(config, programs=programs, seed=1)
    assert report.different == ()
    assert report.programs == programs
    assert 0.1 < report.faulting / programs < 0.4


def test_programs_that_compute_all_the_time() -> None:
    report = check_programs(SMALL, programs=150, seed=1, make=computing_program)
    assert report.different == ()
    assert report.programs == 150


def check_all(programs: Sequence[RandomProgram]) -> RandomReport:
    report = check_programs(
        SMALL,
        programs=len(programs),
        seed=0,
        make=lambda seed, config, disturbed: programs[seed],
    )
    assert report.different == ()
    assert report.programs == len(programs)
    return report


def test_what_no_program_may_do_is_a_fault() -> None:
    words = [(word, SUM.words[-1]) for word in words_beside_instructions(SMALL)]
    programs = [plain_program(each, SMALL) for each in (*words, *vectors_beyond(SMALL))]
    assert check_all(programs).faulting == len(programs)


def test_products_of_one_bit_saturate_exactly() -> None:
    programs = [plain_program(words, SMALL, pad) for words, pad in products_of_one_bit(SMALL)]
    assert check_all(programs).faulting == 0


def test_shifts_by_each_amount() -> None:
    programs = [plain_program(words, SMALL) for words in shifts_by_each_amount(SMALL)]
    assert check_all(programs).faulting == 0


def test_an_engine_may_fill_a_scratchpad_that_nothing_reads() -> None:
    keys = frozenset({"halt", "mov.imm", "ld.sram[8]"})
    config = replace(SMALL, instructions=keys, load_store_queue=2)
    program = assemble("mov r1, #5\nld.sram [8-bit] r0, r0, r1\nhalt\n")
    with PeSimulation(config) as simulation, DramImage(1 << config.address_bits) as image:
        result = simulation.run(Launch(program=program, max_cycles=500), image).engine
    assert (result.state, result.registers[1]) == ("halted", 5)
    assert result.scratchpad == b""


def test_breaking_a_rule_of_the_machine_makes_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that place vector instructions too close together are found to misbehave."""
    monkeypatch.setattr("isa.timing.VECTOR_LATENCY", 1)
    report = check_programs(CONFIG, programs=2000, seed=1)
    assert len(report.different) == 10
    first = report.different[0]
    assert first.listing.startswith(f"; seed {first.seed}, ")
    assert first.what[0] in first.listing
    assert "halt\n" in first.listing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "programs"),
    [
        (CONFIG, 20_000),
        (SMALL, 20_000),
        (replace(CONFIG, sram="fpga"), 2000),
        (replace(CONFIG, sram="macro"), 2000),
        (replace(CONFIG, counters=False), 500),
        *((random_config(seed), 500) for seed in range(12)),
    ],
)
def test_more_random_programs(config: PeConfig, programs: int) -> None:
    report = check_programs(config, programs=programs, seed=1_000_000)
    assert report.different == ()
