"""Runs of traffic against memories, as exchanged with the simulator.

Requesters make random accesses, or replay a trace of an engine's accesses to its vault.
"""

from collections.abc import Mapping
from ctypes import c_uint8, c_uint32, c_uint64
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import Annotated

import numpy as np
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

import sim_tb
from hdl.ports import COLUMN_BYTES, MemoryPort
from memory.model.device_model import DeviceModel, DeviceSetup
from support.schema import C, Chance, Share, Text

from .memory import MemoryBehaviour, MemoryResult
from .models import IMAGE, Library, Model

#: The format of a trace: each access is a 64-bit number.
TRACE_WORD = Path(sim_tb.__file__).parent / "models" / "trace_word.h"
#: Bytes of an access in a trace.
WORD_BYTES = 8

_GAP, _ADDRESS = 4, 24
_LONGEST = (1 << (_ADDRESS - _GAP)) - 1


def moved(trace: bytes, distance: int, *, hasty: bool = False) -> bytes:
    """The accesses of a ``trace``, ``distance`` bytes further on; ``hasty``: without gaps."""
    words = np.frombuffer(trace, dtype="<u8") + np.uint64(distance << _ADDRESS)
    return (words & ~np.uint64(_LONGEST << _GAP) if hasty else words).tobytes()


def trace_end(trace: bytes) -> int:
    """The byte address after the last column that ``trace`` accesses."""
    addresses = np.frombuffer(trace, dtype="<u8") >> _ADDRESS
    return int(addresses.max()) // COLUMN_BYTES * COLUMN_BYTES + COLUMN_BYTES


_LATENCIES = 4096
_COUNTERS = 64
#: Requesters for which results have separate figures.
_REQUESTERS = 64
_DEVICE = 0


class Walk(IntEnum):
    """Order in which a requester goes through its columns."""

    SEQUENTIAL = 0
    RANDOM = 1
    #: 15 of 16 accesses to a few columns, the rest anywhere.
    HOT = 2
    STRIDED = 3


class TrafficOutcome(IntEnum):
    """Outcome of a run."""

    DONE = 0
    #: The memory or the network broke a rule; ``violation`` of the result says which.
    VIOLATION = 1
    TOO_LONG = 2


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """Traffic of one requester.

    Attributes:
        walk: see :class:`Walk`.
        accesses: number of accesses, at least 1.
        stride: columns from one access to the next of a strided walk; at least 1.
        hot: number of columns, from the first on, that get most accesses of a hot walk; at least 1.
        writes: share of writes; 0..1.
        partial: access random words of a column with random strobes instead of whole columns.
        offer: chance per cycle that the next beat of a request is offered; above 0, up to 1.
        take: chance per cycle that responses are taken; above 0, up to 1.
        window: most requests in flight, besides the limit of tags; at least 1.
        outside: share of accesses beyond the memory, if the port reaches that far; 0..1.
        burst: accesses after which the requester rests for a random time; 0: never.
        seed: of the random choices; 0..2**63.
        trace: accesses to replay as of :data:`TRACE_WORD`, least byte first, the first
            ``accesses`` of them; of the other attributes only ``window`` and ``seed`` then count.
            Addresses are relative to the requester's part of the span. Either all requesters of a
            job have a trace, or none. Empty: none.

    Raises:
        ValueError: a value outside its range.
    """

    walk: Walk = Walk.RANDOM
    accesses: int = 1000
    stride: int = 1
    hot: int = 8
    writes: Share = 0.0
    partial: bool = False
    offer: Chance = 1.0
    take: Chance = 1.0
    window: int = 65536
    outside: Share = 0.0
    burst: int = 0
    seed: int = 1
    trace: Annotated[bytes, C(c_uint8)] = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        for name, low in (("accesses", 1), ("stride", 1), ("hot", 1), ("window", 1), ("burst", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < low:
                raise ValueError(f"{name} must be a whole number of {low} or more, not {value!r}")
        for name in ("writes", "outside"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, not {getattr(self, name)!r}")
        for name in ("offer", "take"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1, not {getattr(self, name)}")
        if not 0 <= self.seed <= 2**63:
            raise ValueError(f"seed must be from 0 to 2**63, not {self.seed}")
        room = len(self.trace) // WORD_BYTES
        if self.trace and self.accesses > room:
            raise ValueError(f"accesses must be {room} at most, as many as the trace has")


@dataclass(frozen=True, kw_only=True)
class TrafficJob:
    """One run of all requesters against one memory.

    Attributes:
        patterns: of the requesters, in order.
        begin: address of the first byte accessed, a multiple of a column.
        span: bytes accessed from there on, a multiple of one column per requester. They are filled
            with random contents first.
        patience: cycles after which an unanswered request counts as lost.
        max_cycles: a run that takes longer is an error.

    What runs it adds (:mod:`.traffic_runs`):

    Attributes:
        image: file of the memory. size: its bytes.
        limit: bytes that the ports can address.
        counters: number of counters to read at the end.
        settle: cycles from the last response until they are read.
        device: the DRAM, if there is one.
        memories: behaviour of each memory port, if memories are models.
    """

    patterns: Annotated[tuple[Pattern, ...], C(Pattern)]
    begin: int
    span: int
    patience: int
    max_cycles: int
    image: str = ""
    size: int = 0
    limit: int = 0
    counters: int = 0
    settle: int = 0
    device: DeviceSetup | None = None
    memories: tuple[MemoryBehaviour, ...] = ()

    def __post_init__(self) -> None:
        columns = COLUMN_BYTES * max(len(self.patterns), 1)
        if self.begin % COLUMN_BYTES or self.begin < 0:
            raise ValueError(f"begin must be a multiple of {COLUMN_BYTES}, not {self.begin}")
        if self.span % columns or self.span <= 0:
            raise ValueError(f"span must be a multiple of {columns} above 0, not {self.span}")
        traced = [pattern for pattern in self.patterns if pattern.trace]
        if traced and len(traced) < len(self.patterns):
            raise ValueError("either all patterns have a trace, or none")
        part = self.span // max(len(self.patterns), 1)
        for number, pattern in enumerate(traced):
            if (end := trace_end(pattern.trace)) > part:
                raise ValueError(
                    f"the trace of requester {number} goes to byte {end}, its part of the span has "
                    f"{part}"
                )

    def start(self, library: Library) -> None:
        library.open(self.image)
        if self.device is not None:
            DeviceModel(library.library).open(_DEVICE, self.image, self.device)
        for port, behaviour in enumerate(self.memories):
            library.start("memory", behaviour, port)
        library.start("traffic", self)

    def progress(self, library: Library) -> int:
        return library.result("traffic", TrafficResult).total_cycles

    def result(self, library: Library, seconds: float) -> "TrafficResult":
        result = replace(library.result("traffic", TrafficResult), wall_seconds=seconds)
        violations = [result.violation]
        if self.device is not None:
            device = DeviceModel(library.library)
            result = replace(result, commands=device.counts(_DEVICE))
            violations.append(device.violation(_DEVICE))
        violations += (
            library.result("memory", MemoryResult, port).violation
            for port in range(len(self.memories))
        )
        return replace(result, violation=next(filter(None, violations), ""))


@dataclass(frozen=True, kw_only=True)
class TrafficResult:
    """Result of a run.

    Attributes:
        outcome: how it ended. violation: the rule that was broken first, "" if none.
        cycles: from the first request beat offered to the last response beat.
        reads, writes: completed requests. bytes: requested by them, in whole words.
        longest: greatest latency in cycles, from the first offer of a request to its last response
            beat.
        latency_sum: over all requests.
        longest_offer: most cycles for which a request waited to be taken.
        latencies: requests by latency in cycles; the last entry includes all longer latencies.
        ends: for each of the first 64 requesters, the cycle of its last response beat, counted as
            ``cycles`` is.
        waits: for each of the first 64 requesters, its greatest latency in cycles.
        counters: of the memory controller, by index, since reset.
        total_cycles: since reset.
        commands: DRAM commands by name, since reset.
        wall_seconds: of simulation.
    """

    outcome: TrafficOutcome
    violation: Text
    cycles: int
    reads: int
    writes: int
    bytes: int
    longest: int
    latency_sum: int
    longest_offer: int
    latencies: Annotated[tuple[int, ...], C(c_uint32 * _LATENCIES)]
    ends: Annotated[tuple[int, ...], C(c_uint64 * _REQUESTERS)]
    waits: Annotated[tuple[int, ...], C(c_uint64 * _REQUESTERS)]
    counters: Annotated[tuple[int, ...], C(c_uint64 * _COUNTERS)]
    total_cycles: int
    commands: Mapping[str, int] = field(default_factory=dict)
    wall_seconds: float = 0.0

    @property
    def mean(self) -> float:
        """Mean latency in cycles."""
        answered = self.reads + self.writes
        return self.latency_sum / answered if answered else 0.0


TRAFFIC = Model(
    name="traffic",
    signature=wiring.Signature(
        {
            "reset": Out(1),
            "idle": Out(1),
            #: A rule was broken outside the requesters.
            "failed": In(1),
            "counter_index": Out(32),
            "counter_value": In(64),
        }
    ),
    job=TrafficJob,
    result=TrafficResult,
    sources=(*IMAGE, "trace_word.h", "vault_replay.h", "vault_traffic.cpp"),
)
REQUESTER = Model(
    name="requester",
    signature=wiring.Signature(
        {
            **MemoryPort(address_bits=64, tag_bits=32).members,
            "reset": In(1),
            #: Tags that the port has.
            "tags": In(32),
        }
    ),
    sources=("vault_requester.h", "vault_requester.cpp"),
)
