"""A trimmed engine in cosimulation: same answer, same cycles, and faults on what is gone."""

from dataclasses import replace

import numpy as np
import pytest

from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.run import Launch
from microkernels.suite import choose
from sim_tb.cosim.engine import CosimError, MemoryBehaviour, PeSimulation
from sim_tb.cosim.kernels import run_work
from sim_tb.cosim.trim_check import Measured, check_trimmed, measure
from soc.generate.presets import preset
from synth.analysis.contents import Subject
from synth.analysis.trim import report
from tests.synth.trimming import profile_on, trim
from vip.trimming.runs import subjects_of, timed_profile

FULL = preset("pe-small")
INPUT, ELEMENTS, BLOCKS = 0x1000, 32, 5

#: Sums of products of neighbours, block by block, with loops, loads, stores and a fence; the memory
#: says how many blocks.
PROGRAM = assemble(
    """
        ld.reg [16-bit] r13, r5
        mov.imm r6, #32        ; elements
        set.vl r6
        mov.imm r7, #0         ; in the scratchpad: first, second, result
        mov.imm r8, #64
        mov.imm r9, #128
        mov.imm r10, #0x1000
        mov.imm r11, #0x2000
        mov.imm r12, #0
    top: ld.sram [16-bit] r7, r10, r6
        ld.sram [16-bit] r8, r10, r6
        v.v.add [16-bit] r9, r7, r8
        v.drain
        v.s.max [16-bit] r9, r9, r7
        v.drain
        st.sram [16-bit] r11, r9, r6
        add r10, r10, #64
        add r11, r11, #64
        add r12, r12, #1
        blt r12, r13, top
        memfence
        halt
    """
)


LAUNCH = Launch(program=PROGRAM, max_cycles=20_000)
SLOW = MemoryBehaviour(latency=20)


def memory(blocks: int) -> bytes:
    values = np.random.default_rng(7).integers(-30000, 30000, BLOCKS * ELEMENTS, dtype=np.int16)
    return blocks.to_bytes(2, "little").ljust(INPUT, b"\0") + values.tobytes()


def on_full(**settings: float) -> Measured:
    return measure(LAUNCH, memory(BLOCKS), FULL, behaviour=SLOW, **settings)  # type: ignore[arg-type]


@pytest.mark.slow
def test_trimmed_engine_does_the_same_in_the_same_cycles() -> None:
    full = on_full()
    cut = report(
        PROGRAM,
        FULL,
        [profile_on(Subject(program=PROGRAM), full.contents, FULL)],
        timed=[timed_profile(full, 0.0)],
    )
    known = {bound.name: (bound.size, bound.basis) for bound in cut.bounds}
    assert known["scratchpad_bytes"] == (256, "proved")
    assert known["max_vl"] == (32, "proved")
    assert known["address_bits"] == (14, "profiled")
    # The pointers end where the memory of the full engine does.
    assert known["register_width"] == (26, "proved")
    # The second load may wait for the entry of the store of the block before: nothing else does.
    assert known["arc_entries"] == (2, "profiled")
    assert known["scratchpad_alignment"] == (8, "proved")
    assert len(cut.trimmed.instructions) < 20
    check = check_trimmed(full, FULL, cut.trimmed)
    assert check.match, check.different
    assert not check.unfaulted
    assert check.cycles_full == check.cycles_trimmed == full.result.counters["CYCLES"]
    assert any(full.result.scratchpad)

    # More blocks than the profile saw: further in memory than the trimmed engine's addresses go.
    with DramImage(1 << FULL.address_bits) as image:
        image.write(0, memory(300))
        with PeSimulation(cut.trimmed) as simulation:
            end = simulation.run(Launch(program=PROGRAM, max_cycles=100_000), image).engine
    assert (end.state, end.cause) == ("faulted", FaultCause.DRAM_RANGE)


@pytest.mark.slow
def test_program_in_rom_and_what_is_too_small_is_found() -> None:
    full = on_full(watched=False)
    baked = trim(PROGRAM, FULL, rom=True)
    check = check_trimmed(full, FULL, baked)
    assert check.match, check.different
    assert not check.unfaulted
    # Places for one transfer at a time: the same answer, later.
    fewer = replace(baked, program=None, arc_entries=1)
    slow = check_trimmed(full, FULL, fewer)
    assert slow.different == ("cycles",)
    assert slow.cycles_trimmed > slow.cycles_full
    more = slow.cycles_trimmed / slow.cycles_full - 1
    assert check_trimmed(full, FULL, fewer, slower=more + 0.001, try_removed=False).match
    assert not check_trimmed(full, FULL, fewer, slower=more - 0.001, try_removed=False).match
    # A full engine without the places takes the same cycles, whatever earlier runs left in them.
    with PeSimulation(FULL, watched=True) as simulation:
        cycles = []
        for entries in (FULL.arc_entries, 1, FULL.arc_entries):
            with DramImage(1 << FULL.address_bits) as image:
                image.write(0, full.contents)
                launch = replace(LAUNCH, limits=(entries, FULL.load_store_queue))
                result = simulation.run(launch, image, memory=SLOW)
                cycles.append(result.cycles)
    assert cycles == [slow.cycles_full, slow.cycles_trimmed, slow.cycles_full]
    # Entries are given up as far as the cycles allow.
    slowest, exact = (on_full(slower=part).in_flight for part in (more + 0.001, 0.0))
    assert slowest is not None
    assert exact is not None
    assert slowest[0] == 1 < exact[0]


@pytest.mark.slow
def test_an_application_with_its_program_in_rom() -> None:
    (application,) = choose(["k-means"])
    full = preset(application.preset)
    runs = [measure(*work, full) for work in application.workloads]
    profiles = [profile_on(launch, launch.memories[0], full) for launch in subjects_of(application)]
    timed = [timed_profile(run, 0.0) for run in runs]
    baked = trim(application.programs, full, profiles, timed=timed, rom=True)
    assert baked.program == application.programs[0].words
    assert len(runs) > 1
    for run in runs:
        check = check_trimmed(run, full, baked, try_removed=False)
        assert check.match, check.different
    with PeSimulation(baked) as simulation:
        assert all(run_work(job, simulation).match for job in application.jobs)


@pytest.mark.slow
def test_places_that_are_marked_as_taken_are_places_less() -> None:
    small = replace(FULL, arc_entries=1, load_store_queue=2)
    cycles = []
    for config, limits, watched in ((FULL, (1, 2), True), (small, None, False)):
        with (
            DramImage(1 << FULL.address_bits) as image,
            PeSimulation(config, watched=watched) as simulation,
        ):
            image.write(0, memory(BLOCKS))
            launch = Launch(program=PROGRAM, max_cycles=20_000, limits=limits)
            result = simulation.run(launch, image)
            assert result.engine.halted
            cycles.append(result.cycles)
            for wrong in ((0, 2), (1, FULL.load_store_queue + 1)):
                with pytest.raises(CosimError, match="limits"):
                    simulation.run(replace(launch, limits=wrong), image)
    assert cycles[0] == cycles[1]
