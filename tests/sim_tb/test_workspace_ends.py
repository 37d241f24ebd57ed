"""Accesses at the ends of a workspace's window and image, and stops while it is declared."""

from collections import Counter
from collections.abc import Iterator

import pytest

from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.run import RunResult
from isa.workspace import Workspace
from sim_tb.cosim.engine import PeSimulation
from sim_tb.harness.memory import MemoryBehaviour
from sim_tb.random.comparison import compare, fill, program_job
from sim_tb.random.random_program import RandomProgram

from .test_random_interrupted import SMALL

DESCRIPTOR = 0x100
WORKSPACE = Workspace(
    image=0x400,
    window=0x800,
    width=4,
    height=4,
    pixel_bytes=2,
    output_width=3,
    output_height=3,
    kernel=2,
)
ENDS = [
    end
    for start, size in (
        (WORKSPACE.image, WORKSPACE.image_bytes),
        (WORKSPACE.window, WORKSPACE.window_bytes),
    )
    for end in (start, start + size)
]
SPACE = 1 << SMALL.address_bits


@pytest.fixture(scope="module")
def engine() -> Iterator[PeSimulation]:
    with PeSimulation(SMALL) as simulation:
        yield simulation


def program(
    text: str, memory: MemoryBehaviour | None = None, stop_after: int | None = None
) -> RandomProgram:
    """A program in a memory with the descriptor, in which no two bytes nearby are equal."""
    content = bytearray(number * 7 % 251 for number in range(SPACE))
    content[DESCRIPTOR : DESCRIPTOR + 32] = WORKSPACE.pack()
    return RandomProgram(
        seed=0,
        words=assemble(text).words,
        windows=((0, bytes(content)),),
        scratchpad=bytes(255 - number for number in range(SMALL.scratchpad_bytes)),
        parameters=0,
        pe_index=0,
        vault=0,
        slot=0,
        pe_count=1,
        memory=memory or MemoryBehaviour(latency=3),
        reset=False,
        fault="",
        stop_after=stop_after,
    )


def differing(engine: PeSimulation, one: RandomProgram) -> tuple[list[str], FaultCause]:
    """What a program leaves that the simulator does not allow, and how it ended; it must end."""
    with DramImage(SPACE) as image, DramImage(SPACE) as other:
        fill(image, one)
        fill(other, one)
        (result,) = engine.run_many([program_job(one, image, engine)])
        assert isinstance(result, RunResult), result
        lines, _ = compare(one, SMALL, result, image, other)
        return lines, result.engine.cause


def accesses() -> Iterator[str]:
    """Accesses of some bytes up to, across and from each of the four ends."""
    for end in ENDS:
        for size in (1, 2, 9, 33):
            for place in sorted(
                {end - size - 1, end - size, end - size + 1, end - 1, end, end + 1}
            ):
                where = f"mov r7, #{place}\nmov r8, #16\nmov r9, #{size}\n"
                yield f"{where}ld.sram [8-bit] r8, r7, r9"
                yield f"{where}st.sram [8-bit] r7, r8, r9"
        for width in (1, 2, 8):
            for place in (end - width, end):
                yield f"mov r7, #{place}\nmov r8, #77\nld.reg [{8 * width}-bit] r8, r7"
                yield f"mov r7, #{place}\nmov r8, #77\nst.reg [{8 * width}-bit] r7, r8"


def test_accesses_at_the_ends_of_window_and_image(engine: PeSimulation) -> None:
    ends: Counter[FaultCause] = Counter()
    for access in accesses():
        text = f"mov r6, #{DESCRIPTOR}\nset.ws r6\n{access}\nmemfence\nhalt\n"
        lines, cause = differing(engine, program(text))
        assert not lines, access
        ends[cause] += 1
    assert set(ends) == {
        FaultCause.NONE,
        FaultCause.STORE_TO_WORKSPACE,
        FaultCause.WORKSPACE_EDGE,
    }
    assert min(ends.values()) > 10


#: A store before the declaration, which waits for it, loads from the window behind it, and a second
#: declaration, which waits for these.
DECLARING = f"""
    mov r6, #{DESCRIPTOR}
    mov r7, #{WORKSPACE.window}
    mov r8, #16
    mov r9, #{WORKSPACE.window_bytes}
    mov r10, #{0xC00}
    st.sram [8-bit] r10, r8, r9
    set.ws r6
    ld.sram [8-bit] r8, r7, r9
    ld.reg [64-bit] r11, r6
    set.ws r6
    add r7, r7, #8
    mov r9, #33
    ld.sram [8-bit] r0, r7, r9
    v.drain
    st.sram [8-bit] r10, r0, r9
    memfence
    halt
"""


def stopped(engine: PeSimulation, memory: MemoryBehaviour, step: int) -> int:
    """Stop :data:`DECLARING` at every ``step``-th cycle; the number of stops.

    It leaves what a place in it allows, unless its descriptor can't be read; and, launched again
    without a reset, what the simulator says.
    """
    whole = program(DECLARING, memory)
    with DramImage(SPACE) as image:
        fill(image, whole)
        (result,) = engine.run_many([program_job(whole, image, engine)])
    assert isinstance(result, RunResult), result
    healthy = program(DECLARING)
    cycles = range(0, result.engine.elapsed_cycles, step)
    for cycle in cycles:
        lines, cause = differing(engine, program(DECLARING, memory, cycle))
        if memory.errors == (0, 0):
            assert not lines, f"stopped after {cycle} cycles"
        else:
            assert cause in (FaultCause.NONE, FaultCause.MEMORY_ERROR)
        lines, _ = differing(engine, healthy)
        assert not lines, f"launched after a stop after {cycle} cycles"
    return len(cycles)


def test_some_stops_of_a_declaration(engine: PeSimulation) -> None:
    assert stopped(engine, MemoryBehaviour(latency=20), 13) > 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "memory",
    [
        MemoryBehaviour(latency=1),
        MemoryBehaviour(latency=40),
        MemoryBehaviour(latency=20, stall=0.5, gap=0.5),
        MemoryBehaviour(latency=20, errors=(DESCRIPTOR, DESCRIPTOR + 32)),
    ],
)
def test_stops_in_every_cycle_of_a_declaration(
    engine: PeSimulation, memory: MemoryBehaviour
) -> None:
    assert stopped(engine, memory, 1) > 100
