"""Runs of one engine beside a memory, as they are handed to the simulator and back."""

import ctypes
from collections.abc import Mapping
from ctypes import c_uint32, c_uint64
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache
from typing import Annotated

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from isa.faults import FaultCause
from isa.run import EngineEnd
from pe.config import PeConfig
from pe.interface import ControlPort, IdentityPort, PeCounter, PeState
from support.schema import C, Signed

from .memory import MemoryBehaviour, MemoryResult
from .models import Library, Model
from .readout import EngineMemories

__all__ = ["HOST", "NEVER", "HostJob", "HostResult", "Outcome"]

#: More cycles than any run takes.
NEVER = 2**63
_COUNTERS = 16


class Outcome(IntEnum):
    """Outcome of a run, as the host model reports it."""

    ENDED = 0
    #: The program went on to the limit of cycles; the engine then obeyed ``stop``.
    TOO_LONG = 1
    #: The engine did not even stop.
    HUNG = 2
    #: The engine broke a rule of the memory port.
    VIOLATION = 3
    #: The engine said that it had ended with requests in flight.
    IN_FLIGHT = 4


@dataclass(frozen=True, kw_only=True)
class HostJob:
    """One run as it is handed to the simulator; :meth:`sim_tb.cosim.engine.PeSimulation.job` has
    the meaning.

    ``stop_after`` is :data:`NEVER` without a stop. ``stop_cycles`` is how long a stopped engine may
    take to complete what it has issued; one that takes longer hangs. ``sizes`` are those of the
    tables of a watched engine, None for one that is not.
    """

    words: Annotated[tuple[int, ...], C(c_uint32)]
    parameters: int
    max_cycles: int
    stop_cycles: int
    reset: bool = True
    stop_after: int = NEVER
    identity: Annotated[tuple[int, int, int, int], C(c_uint64 * 4)] = (0, 0, 0, 1)
    memory: str = ""
    behaviour: MemoryBehaviour = field(default_factory=MemoryBehaviour)
    scratchpad: bytes | None = None
    sizes: tuple[int, int] | None = None
    limits: tuple[int, int] | None = None

    def start(self, library: Library) -> None:
        library.open(self.memory)
        library.start("memory", self.behaviour)
        memories = _memories(library.library)
        if self.scratchpad is not None:
            memories.scratchpad = self.scratchpad
        if self.sizes is not None:
            memories.limit(self.sizes, self.limits)
        library.start("host", self)

    def progress(self, library: Library) -> int:
        return library.result("host", HostResult).cycles

    def result(self, library: Library, seconds: float) -> "HostResult":
        memories = _memories(library.library)
        return replace(
            library.result("host", HostResult),
            violation=library.result("memory", MemoryResult).violation,
            wall_seconds=seconds,
            registers=memories.registers,
            scratchpad=memories.scratchpad,
            in_flight=memories.in_flight,
            history=memories.history,
        )


@dataclass(frozen=True, kw_only=True)
class HostResult:
    """State that the host found at the end of a run, and contents of the simulated engine then."""

    outcome: Outcome
    cycles: int
    counters: Annotated[tuple[int, ...], C(c_uint64 * _COUNTERS)]
    state: int
    cause: int
    pc: Signed
    memory_error: bool
    # Fields that the model of the host does not know.
    violation: str = ""
    wall_seconds: float = 0.0
    registers: tuple[int, ...] = ()
    scratchpad: bytes = b""
    in_flight: tuple[int, int] | None = None
    history: Mapping[str, int] = field(default_factory=dict)

    @property
    def end(self) -> EngineEnd:
        """What the host saw."""
        return EngineEnd(
            state=PeState(self.state).name.lower(),
            cause=FaultCause(self.cause),
            pc=self.pc,
            memory_error=self.memory_error,
            cycles=self.cycles,
            counters={item.name: self.counters[item] for item in PeCounter},
        )


@cache
def _memories(simulator: ctypes.CDLL) -> EngineMemories:
    """The memories of the simulated engine, looked up once."""
    return EngineMemories(simulator)


HOST = Model(
    name="host",
    signature=wiring.Signature(
        {
            **ControlPort(PeConfig()).flip().members,
            **IdentityPort().flip().members,
            "reset": Out(1),
            "idle": Out(1),
            #: A rule was broken outside the engine.
            "failed": In(1),
            #: Requests that the memory has not answered.
            "in_flight": In(32),
        }
    ),
    job=HostJob,
    result=HostResult,
    sources=("pe_host.cpp",),
)
