"""Behaviour of an engine after an error of the memory."""

import pytest

from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.run import Launch
from pe.config import PeConfig
from sim_tb.cosim.engine import MemoryBehaviour, PeSimulation

START = "mov r1, #4096\nmov r2, #64\nmov r4, #8\nset.vl r4\nmov r6, #256\n"
#: Programs that load from 4096 on and store what they got at 64: text, word that must not be done.
PROGRAMS = {
    "register": (START + "ld.reg [64-bit] r3, r1\nst.reg [64-bit] r2, r3\nhalt\n", 6),
    "scratchpad": (START + "ld.sram [64-bit] r0, r1, r4\nst.sram [64-bit] r2, r0, r4\nhalt\n", 6),
    "vector": (
        START
        + "ld.sram [64-bit] r0, r1, r4\nv.v.add [64-bit] r6, r0, r0\nv.drain\n"
        + "st.sram [64-bit] r2, r6, r4\nhalt\n",
        6,
    ),
    "fence": (
        START + "ld.sram [64-bit] r0, r1, r4\nmemfence\nst.reg [64-bit] r2, r4\nhalt\n",
        6,
    ),
}


@pytest.fixture(scope="module")
def engine():
    with PeSimulation(PeConfig()) as simulation:
        yield simulation


@pytest.mark.parametrize("latency", [1, 40, 300])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_done_with_data_that_failed_to_load(engine, name, latency):
    text, waiting = PROGRAMS[name]
    memory = MemoryBehaviour(latency=latency, errors=(4096, 8192))
    with DramImage(1 << engine.config.address_bits) as image:
        image.write(4096, bytes(range(64)))
        launch = Launch(program=assemble(text), max_cycles=10_000)
        result = engine.run(launch, image, memory=memory).engine
        assert (result.state, result.cause) == ("faulted", FaultCause.MEMORY_ERROR)
        assert result.pc == waiting
        assert image.read(64, 64) == bytes(64)


def test_engine_runs_again_after_an_error(engine):
    text, _ = PROGRAMS["register"]
    launch = Launch(program=assemble(text), max_cycles=10_000)
    with DramImage(1 << engine.config.address_bits) as image:
        image.write(4096, bytes(range(8)))
        memory = MemoryBehaviour(errors=(4096, 8192))
        assert engine.run(launch, image, memory=memory).engine.state == "faulted"
        assert engine.run(launch, image, reset=False).engine.halted
        assert image.read(64, 8) == bytes(range(8))


#: Programs that store where memory fails and end in another way: text, their own cause and word.
OTHER_FAULTS = {
    "end of the program": ("", FaultCause.PC_OUT_OF_PROGRAM, 3),
    "illegal": (".word 0xffffffff\n", FaultCause.ILLEGAL_INSTRUCTION, 3),
    "misaligned": ("st.reg [64-bit] r9, r9\n", FaultCause.MISALIGNED, 3),
    "setting": ("set.vl r0\n", FaultCause.VECTOR_SETTING, 3),
}


@pytest.mark.parametrize("latency", [1, 2, 3, 4, 5, 6, 7, 8, 40])
@pytest.mark.parametrize("name", OTHER_FAULTS)
def test_a_memory_error_beside_another_fault_is_reported_too(engine, name, latency):
    """The store is answered before the fault, with it, and while the engine drains."""
    rest, cause, pc = OTHER_FAULTS[name]
    program = assemble("mov r1, #4096\nmov r9, #3\nst.reg [64-bit] r1, r9\n" + rest)
    fails = MemoryBehaviour(latency=latency, errors=(4096, 8192))
    with DramImage(1 << engine.config.address_bits) as image:

        def run(memory, **options):
            launch = Launch(program=program, max_cycles=10_000)
            return engine.run(launch, image, memory=memory, **options).engine

        result = run(fails)
        assert result.state == "faulted"
        assert result.memory_error
        if latency >= 8:
            assert (result.cause, result.pc) == (cause, pc)
        assert image.read(4096, 8) == bytes(8)
        # The next launch has its own fault alone.
        result = run(MemoryBehaviour(latency=latency), reset=False)
        assert (result.cause, result.pc) == (cause, pc)
        assert not result.memory_error
        assert image.read(4096, 8) == (3).to_bytes(8, "little")


def test_a_memory_error_alone_is_reported_as_cause_and_bit(engine):
    text, _ = PROGRAMS["register"]
    with DramImage(1 << engine.config.address_bits) as image:
        launch = Launch(program=assemble(text), max_cycles=10_000)
        result = engine.run(launch, image, memory=MemoryBehaviour(errors=(4096, 8192))).engine
    assert result.cause is FaultCause.MEMORY_ERROR
    assert result.memory_error
