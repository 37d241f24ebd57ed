"""Accesses at the ends of a workspace's window and image, and stops while it is declared."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from random import Random

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

from .cosim.computing import plain_program
from .test_random_interrupted import SMALL
from .timed.test_timed_model import results_of_both, run_of

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
    text: str,
    memory: MemoryBehaviour | None = None,
    stop_after: int | None = None,
    descriptor: bytes = WORKSPACE.pack(),
) -> RandomProgram:
    """A program in a memory with the descriptor, in which no two bytes nearby are equal."""
    content = bytearray(number * 7 % 251 for number in range(SPACE))
    content[DESCRIPTOR : DESCRIPTOR + 32] = descriptor
    pad = bytes(255 - number for number in range(SMALL.scratchpad_bytes))
    program = plain_program(assemble(text).words, SMALL, pad)
    return replace(
        program,
        windows=((0, bytes(content)),),
        memory=memory or MemoryBehaviour(latency=3),
        launch=replace(program.launch, stop_after=stop_after),
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


#: With nothing to spare: whatever else an engine checks, each number matters by itself.
SPACIOUS = replace(WORKSPACE, padding=3, kernel=1)


def invalid() -> Iterator[bytes]:
    """Descriptors that are invalid by one bit or number only."""
    content = SPACIOUS.pack()
    # Each number is 0, or has a bit that is too high: pixels have 12 bits, others four.
    numbers = [(at, 2, range(12, 16)) for at in range(16, 26, 2)]
    numbers += [(at, 1, range(4, 8)) for at in (26, 27, 28)]
    zeros = [(at, size) for at, size, _ in numbers if at != 28]
    for at, size in zeros:
        yield content[:at] + bytes(size) + content[at + size :]
    bits = [8 * at + bit for at, _, high in numbers for bit in high]
    bits += [*range(SMALL.address_bits, 64, 3), *range(64 + SMALL.address_bits, 128, 3), 63, 127]
    bits += [232, 240, 255]
    for bit in bits:
        yield (int.from_bytes(content, "little") ^ 1 << bit).to_bytes(32, "little")
    single = {"width": 1, "height": 1, "output_width": 1, "output_height": 1, "padding": 4}
    for power, (start, other, rows, columns, kernel) in product(
        range(SMALL.address_bits, 40),
        (
            ("image", "window", "height", "width", 1),
            ("window", "image", "output_height", "output_width", 1),
            ("window", "image", "output_height", "output_width", 8),
        ),
    ):
        left = power - 2 * (kernel.bit_length() - 1)
        if left > 33:
            continue
        pixel, *sizes = (1 << max(0, min(left - 11 * number, 11)) for number in range(3))
        # The end of the large one is 0 in the bits of an address.
        places = {start: 0, other: 2048, columns: sizes[0], rows: sizes[1]}
        yield replace(
            WORKSPACE, **{**single, **places, "pixel_bytes": pixel, "kernel": kernel}
        ).pack()


def test_a_descriptor_with_one_invalid_bit_is_refused(engine: PeSimulation) -> None:
    text = f"mov r6, #{DESCRIPTOR}\nset.ws r6\nhalt\n"
    assert differing(engine, program(text, descriptor=SPACIOUS.pack())) == ([], FaultCause.NONE)
    for descriptor in invalid():
        lines, cause = differing(engine, program(text, descriptor=descriptor))
        assert (lines, cause) == ([], FaultCause.WORKSPACE), descriptor.hex()


def wide_workspace(random: Random) -> Workspace:
    """A workspace of a few large pixels or many small ones, at any place behind the descriptor,
    often the last."""

    def any_size(most: int) -> int:
        return random.randint(1, 1 << random.randint(0, most))

    first = DESCRIPTOR + 32
    while True:
        workspace = Workspace(
            image=0,
            window=0,
            width=any_size(5),
            height=any_size(5),
            pixel_bytes=any_size(9),
            output_width=any_size(4),
            output_height=any_size(4),
            kernel=random.choice((1, 2, 3, 5)),
            stride=random.randint(1, 15),
            padding=random.randint(0, 15),
        )
        sizes = [workspace.image_bytes, workspace.window_bytes]
        least = min(workspace.width, workspace.height) + 2 * workspace.padding
        rest = SPACE - first - sum(sizes)
        if rest < 0 or workspace.kernel > least:
            continue
        gap = random.choice((0, rest, random.randint(0, rest)))
        if random.random() < 0.5:
            return replace(workspace, image=first + gap, window=first + gap + sizes[0])
        return replace(workspace, window=first + gap, image=first + gap + sizes[1])


#: Few workspaces in so small a memory have padding of more bytes.
FAR = Workspace(
    image=0x200,
    window=0x900,
    width=1,
    height=1,
    pixel_bytes=1180,
    output_width=1,
    output_height=1,
    kernel=1,
    stride=15,
    padding=14,
)


def loading(workspace: Workspace, random: Random) -> RandomProgram:
    """Loads from anywhere in the window; half of them follow each other, or seem to."""
    text = [f"mov r6, #{DESCRIPTOR}\nset.ws r6"]
    start, end = workspace.window, workspace.window + workspace.window_bytes
    place = start
    for _ in range(10):
        how = random.random()
        if how < 0.3:
            place = random.randrange(start, end)
        elif how < 0.5:
            place ^= 1 << random.randrange(SMALL.address_bits)
        if not start <= place < end:
            place = random.choice((start, end - 1))
        size = random.randint(1, min(40, end - place))
        pad = random.randrange(SMALL.scratchpad_bytes - size)
        text.append(f"mov r7, #{place}\nmov r8, #{pad}\nmov r9, #{size}")
        text.append("ld.sram [8-bit] r8, r7, r9")
        place += size
    text.append("memfence\nhalt\n")
    return program("\n".join(text), descriptor=workspace.pack())


def test_random_loads_from_wide_workspaces() -> None:
    random = Random(46)
    wide = [wide_workspace(random) for _ in range(60)]
    programs = [loading(workspace, random) for workspace in (FAR, FAR, *wide)]
    runs = (partial(run_of, one) for one in programs)
    assert all(end.halted for end in results_of_both(SMALL, runs))
