"""Runs of one engine with a memory, as exchanged with the simulator.

Registers and scratchpad of the simulated engine are accessed directly, not through its ports.
"""

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import c_uint32, c_uint64
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache
from typing import Annotated, Any, NamedTuple

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from isa.faults import FaultCause
from isa.iss.explain import fault_line
from isa.program import Program
from isa.run import EngineEnd
from pe.config import PeConfig
from pe.interface import ControlPort, HistoryCounter, IdentityPort, PeCounter, PeState
from pe.sequencer import overhead_cycles
from support.schema import C, Signed

from .memory import MemoryBehaviour, MemoryResult
from .models import ARRAYS, MEMORIES, Library, Model, array, arrays

#: :data:`.models.MEMORIES` of a watched engine (pe_watch.sv), whose tables can be made smaller.
WATCH_CONTROL = f"""{MEMORIES}public_flat_rd -module "vip_*_watch" -var "most"
forceable -module "arc" -var "occupied"
forceable -module "arc" -var "conflicts"
forceable -module "load_store" -var "free"
"""

#: Numbers of banks that a scratchpad may have.
_BANKS = (8, 16)


class EngineMemories:
    """Registers and scratchpad of the simulated engine, read and written in place.

    An engine without memories in plain arrays has no registers and an empty scratchpad.
    """

    def __init__(self, simulator: ctypes.CDLL) -> None:
        self._simulator = simulator
        memory_arrays = arrays(simulator)
        memories = {
            part: [
                memory_arrays[place] for place in sorted(memory_arrays) if f".{part}." in place[0]
            ]
            for part in ("registers", "scratchpad", "counters.history")
        }
        watched = {
            part: scope.removesuffix(".watch")
            for scope, _ in memory_arrays
            for part in ("arc", "load_store")
            if scope.endswith(f".{part}.watch")
        }
        self._watched = watched
        self._most = {
            part: memory_arrays[f"{scope}.watch", "most"] for part, scope in watched.items()
        }
        self._registers = memories["registers"][:1]
        self._history = memories["counters.history"][:1]
        self._banks = memories["scratchpad"] if len(memories["scratchpad"]) in _BANKS else []

    @property
    def registers(self) -> tuple[int, ...]:
        """All registers as 64-bit patterns."""
        return tuple(self._registers[0]) if self._registers else ()

    @property
    def in_flight(self) -> tuple[int, int] | None:
        """Most entries of the array range check, and most memory requests, in use at once since the
        reset (pe_watch.sv); None if the engine is not watched."""
        if not self._most:
            return None
        return int(self._most["arc"][0]), int(self._most["load_store"][0])

    @property
    def history(self) -> dict[str, int]:
        """Counters of the load history by their :class:`pe.interface.HistoryCounter` name; empty if
        the engine has no load history."""
        return {
            item.name: int(bank[item - min(HistoryCounter)])
            for bank in self._history
            for item in HistoryCounter
        }

    def limit(self, sizes: tuple[int, int], limits: tuple[int, int] | None) -> None:
        """Make a watched engine behave as one with smaller tables.

        Parameters:
            sizes: its entries of the array range check, and its tags. limits: how many of each it
                may use; None: all.
        """
        entries, tags = (
            (size, (1 << size) - (1 << limit))
            for size, limit in zip(sizes, limits or sizes, strict=True)
        )
        # A disabled entry may still have a range of an earlier run, which must not count.
        for part, name, value, (size, beyond) in (
            ("arc", "occupied", True, entries),
            ("arc", "conflicts", False, entries),
            ("load_store", "free", False, tags),
        ):
            for suffix, pattern in (("Val", beyond if value else 0), ("En", beyond)):
                force = array(
                    self._simulator, self._watched[part], f"{name}__Vforce{suffix}", size, 1
                )
                force[0] = pattern

    @property
    def scratchpad(self) -> bytes:
        """The scratchpad; of ``n`` banks, byte ``i`` lies in bank ``i % n``."""
        if not self._banks:
            return b""
        banks = len(self._banks)
        content = bytearray(banks * len(self._banks[0]))
        for number, bank in enumerate(self._banks):
            content[number::banks] = bytes(bank)
        return bytes(content)

    @scratchpad.setter
    def scratchpad(self, content: bytes) -> None:
        for number, bank in enumerate(self._banks):
            bank[:] = list(content[number :: len(self._banks)])


#: A cycle that no run reaches.
NEVER = 2**63
_COUNTERS = 16


class Outcome(IntEnum):
    """Outcome of a run as the host model reports it."""

    ENDED = 0
    #: The program reached the limit of cycles; the engine then obeyed ``stop``.
    TOO_LONG = 1
    #: The engine did not even stop.
    HUNG = 2
    #: The engine broke a rule of the memory port.
    VIOLATION = 3
    #: The engine reported its end with requests still in flight.
    IN_FLIGHT = 4
    #: The host reset the engine, as the job says.
    WAS_RESET = 5


class EngineIdentity(NamedTuple):
    """An engine's place in a chip, as its program sees it; each number 0..65535. By default the
    engine is alone."""

    pe_index: int = 0
    vault: int = 0
    slot: int = 0
    pe_count: int = 1


ALONE = EngineIdentity()


@dataclass(frozen=True, kw_only=True)
class HostJob:
    """One run for the simulator; see :meth:`sim_tb.cosim.engine.PeSimulation.job`.

    ``stop_after`` is :data:`NEVER` without a stop. A stopped engine that needs more than
    ``stop_cycles`` to complete what it has issued hangs. The run ends with a reset ``reset_after``
    cycles after the job has begun, those of its loading included, if it has not ended before.
    ``sizes`` are those of a watched engine's tables, otherwise None.
    """

    words: Annotated[tuple[int, ...], C(c_uint32)]
    parameters: int
    max_cycles: int
    stop_cycles: int
    reset: bool = True
    stop_after: int = NEVER
    reset_after: int = NEVER
    identity: Annotated[tuple[int, ...], C(c_uint64 * 4)] = ALONE
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
    """State of the engine at the end of a run: what the host sees, and its contents."""

    outcome: Outcome
    cycles: int
    counters: Annotated[tuple[int, ...], C(c_uint64 * _COUNTERS)]
    state: int
    cause: int
    pc: Signed
    memory_error: bool
    # Fields that the host model does not set.
    violation: str = ""
    wall_seconds: float = 0.0
    registers: tuple[int, ...] = ()
    scratchpad: bytes = b""
    in_flight: tuple[int, int] | None = None
    history: Mapping[str, int] = field(default_factory=dict)

    def end(self, program: Program | Sequence[int], config: PeConfig, slot: int = 0) -> EngineEnd:
        """The end of the engine of ``config`` in ``slot``, as the host saw it."""
        return engine_end(self, PeState(self.state).name.lower(), program, config, slot)


def engine_end(
    ended: Any, state: str, program: Program | Sequence[int], config: PeConfig, slot: int
) -> EngineEnd:
    """The end in ``state`` of the engine of ``config`` in ``slot`` of its vault.

    Parameters:
        ended: the numbers of a :class:`HostResult`, or of a timing model.
        program: that ran, or its words.
    """
    cause = FaultCause(ended.cause)
    counters = {item.name: ended.counters[item] for item in PeCounter} if config.counters else {}
    return EngineEnd(
        state=state,
        cause=cause,
        pc=ended.pc,
        memory_error=ended.memory_error,
        cycles=counters.get("CYCLES", max(ended.cycles - overhead_cycles(config), 0)),
        elapsed_cycles=ended.cycles,
        counters=counters,
        pe=slot,
        slot=slot,
        fault=fault_line(program, cause, ended.pc) if state == "faulted" else "",
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
    sources=("pe_host.cpp", ARRAYS),
)
