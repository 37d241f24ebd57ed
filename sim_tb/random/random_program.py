"""What a random program consists of."""

from dataclasses import dataclass

from sim_tb.harness.memory import MemoryBehaviour

__all__ = ["RandomProgram", "Window"]


@dataclass(frozen=True)
class Window:
    """A stretch of memory that a program may touch, and its initial contents."""

    start: int
    content: bytes


@dataclass(frozen=True, kw_only=True)
class RandomProgram:
    """A program with all that decides its behaviour.

    Attributes:
        seed: that made it. words: the program.
        windows, scratchpad: initial contents of memory and scratchpad; the program touches no other
            memory.
        parameters, pe_index, vault, slot, pe_count: of the launch.
        memory: behaviour of the memory. stop_after: cycles after the launch after which the host
            stops the engine, or None.
        reset: whether the engine is reset before. fault: name of the fault at its end, or "".
    """

    seed: int
    words: tuple[int, ...]
    windows: tuple[Window, ...]
    scratchpad: bytes
    parameters: int
    pe_index: int
    vault: int
    slot: int
    pe_count: int
    memory: MemoryBehaviour
    stop_after: int | None
    reset: bool
    fault: str
