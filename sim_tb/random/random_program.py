"""The parts of a random program: words, contents and behaviour of memories, and events."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from hdl.ports import COLUMN_BYTES
from isa.program import Span
from isa.run import Launch
from sim_tb.harness.engine import EngineIdentity
from sim_tb.harness.memory import MemoryBehaviour


@dataclass(frozen=True, kw_only=True)
class RandomProgram:
    """A program with everything that decides its behaviour.

    Attributes:
        seed: its seed. launch: of the program, with the cycles until the host stops it, if any.
        windows: address and initial contents of all memory that the program may touch. scratchpad:
            its initial contents.
        identity: of the engine. memory: behaviour of the memory.
        reset: whether the engine is reset first. fault: name of the fault at its end, or "".
    """

    seed: int
    launch: Launch
    windows: tuple[tuple[int, bytes], ...]
    scratchpad: bytes
    identity: EngineIdentity
    memory: MemoryBehaviour
    reset: bool
    fault: str

    @property
    def words(self) -> tuple[int, ...]:
        """The program's words."""
        return self.launch.program.words


#: Share of contents that are extreme elements of all widths.
_EXTREME = 0.3
_WORD = 8
#: Maximum cycles until a stop: while the launch clears registers, in short programs, in all.
_STOPS = (80, 400, 3000, 30_000)


def disturb(
    program: RandomProgram, random: Random, share: float, windows: Sequence[Span]
) -> RandomProgram:
    """``program``; a ``share`` of all programs gets errors in one of the memory's ``windows``, a
    stop, or both."""
    if random.random() >= share:
        return program
    kind = random.choice(("errors", "errors", "stop", "stop", "both"))
    errors = (0, 0)
    if kind != "stop":
        window = random.choice(windows)
        columns = window.size // COLUMN_BYTES
        count = min(columns, random.choice((1, 4, 16, columns)))
        # Random programs access the ends of windows most.
        first = random.choice((0, columns - count, random.randint(0, columns - count)))
        start = window.start - window.start % COLUMN_BYTES + first * COLUMN_BYTES
        errors = (start, start + count * COLUMN_BYTES)
    stop = None if kind == "errors" else random.randrange(random.choice(_STOPS))
    return replace(
        program,
        memory=replace(program.memory, errors=errors),
        launch=replace(program.launch, stop_after=stop),
    )


def contents(random: Random, size: int) -> bytes:
    """``size`` bytes for a memory: any, or elements of all widths near their limits."""
    if random.random() >= _EXTREME:
        return random.randbytes(size)
    words = bytearray()
    while len(words) < size:
        width = random.choice((1, 2, 4, 8))
        low = -(1 << (8 * width - 1))
        for _ in range(_WORD // width):
            value = random.choice((low, low, -low - 1, -low - 1, low + 1, -low - 2, -1, 0, 1))
            words += value.to_bytes(width, "little", signed=True)
    return bytes(words[:size])


def memory_behaviour(random: Random) -> MemoryBehaviour:
    """A memory without errors that is fast, slow, or irregular."""
    seed = random.getrandbits(64)
    if random.random() < 0.3:
        return MemoryBehaviour(latency=random.choice((1, 2, 3, 40)), seed=seed)
    return MemoryBehaviour(
        latency=random.choice((1, 2, 5, 20, 40, 150)),
        extra_latency=random.choice((0, 1, 5, 50, 200)),
        bandwidth=random.choice((256, 256, 128, 32)),
        stall=random.choice((0.0, 0.0, 0.1, 0.5, 0.9)),
        gap=random.choice((0.0, 0.0, 0.1, 0.5, 0.9)),
        out_of_order=random.random() < 0.7,
        seed=seed,
    )
