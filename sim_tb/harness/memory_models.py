"""The traffic model of a simulated vault as seen from Python: jobs, results, C++ functions."""

import ctypes
import json
from collections.abc import Mapping
from ctypes import POINTER, byref, c_char_p, c_int32, c_uint32, c_uint64
from dataclasses import asdict, dataclass, fields
from enum import IntEnum
from typing import Any

from hdl.ports import COLUMN_BYTES

__all__ = ["Pattern", "TrafficJob", "TrafficModel", "TrafficOutcome", "TrafficResult", "Walk"]

_CERTAIN = 65536
_LATENCIES = 4096
_COUNTERS = 64


class Walk(IntEnum):
    """In which order a requester goes through its columns."""

    SEQUENTIAL = 0
    RANDOM = 1
    #: 15 of 16 accesses to a few columns, the others anywhere.
    HOT = 2
    STRIDED = 3


class TrafficOutcome(IntEnum):
    """How a run went."""

    DONE = 0
    #: The memory broke a rule; :attr:`TrafficResult.violation` says which.
    VIOLATION = 1
    TOO_LONG = 2


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """What one requester does.

    Attributes:
        walk: see :class:`Walk`.
        accesses: 1 or more.
        stride: columns from one access to the next when strided; 1 or more.
        hot: the columns, from the first on, that take most accesses of a hot walk; 1 or more.
        writes: share of writes; 0..1.
        partial: any words of a column and any strobes, instead of whole columns.
        offer: chance per cycle that the next beat of a request is offered; above 0, up to 1.
        take: chance per cycle that responses are taken; above 0, up to 1.
        window: requests in flight at most (nor more than there are tags); 1 or more.
        outside: share of accesses beyond the memory, where the port reaches beyond it; 0..1.
        burst: accesses after which the requester rests for a random time; 0: never.
        seed: of everything random; 0..2**63.

    Raises:
        ValueError: a value outside its range.
    """

    walk: Walk = Walk.RANDOM
    accesses: int = 1000
    stride: int = 1
    hot: int = 8
    writes: float = 0.0
    partial: bool = False
    offer: float = 1.0
    take: float = 1.0
    window: int = 65536
    outside: float = 0.0
    burst: int = 0
    seed: int = 1

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


@dataclass(frozen=True, kw_only=True)
class TrafficJob:
    """One run of all requesters against one memory.

    Attributes:
        patterns: of the requesters, in order.
        begin: first byte that is accessed; a multiple of a column.
        span: bytes accessed from there on; a multiple of a column for each requester. They are
            filled with random contents first.
        patience: cycles after which a request without an answer counts as lost.
        max_cycles: a run that takes longer is an error.
    """

    patterns: tuple[Pattern, ...]
    begin: int
    span: int
    patience: int
    max_cycles: int

    def __post_init__(self) -> None:
        columns = COLUMN_BYTES * max(len(self.patterns), 1)
        if self.begin % COLUMN_BYTES or self.begin < 0:
            raise ValueError(f"begin must be a multiple of {COLUMN_BYTES}, not {self.begin}")
        if self.span % columns or self.span <= 0:
            raise ValueError(f"span must be a multiple of {columns} above 0, not {self.span}")

    def to_dict(self) -> dict[str, Any]:
        """The job as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "TrafficJob":
        """The job that :meth:`to_dict` made."""
        patterns = tuple(
            Pattern(**(pattern | {"walk": Walk(pattern["walk"])})) for pattern in raw["patterns"]
        )
        return cls(**(dict(raw) | {"patterns": patterns}))


@dataclass(frozen=True, kw_only=True)
class TrafficResult:
    """What became of a run.

    Attributes:
        outcome: how it ended. violation: the rule that was broken first, "" if none.
        cycles: from the first request beat offered to the last response beat.
        reads, writes: answered. bytes: that these asked for, whole words.
        longest: latency in cycles, from the first offer of a request to its last response beat.
        mean: latency in cycles.
        longest_offer: cycles for which a request waited to be taken.
        latencies: requests by latency in cycles; the last place also has all longer ones.
        counters: of the memory controller, by index, since reset.
        total_cycles: since reset.
        commands: that the DRAM saw, by name, since reset.
        wall_seconds: of simulation.
    """

    outcome: TrafficOutcome
    violation: str
    cycles: int
    reads: int
    writes: int
    bytes: int
    longest: int
    mean: float
    longest_offer: int
    latencies: tuple[int, ...]
    counters: tuple[int, ...]
    total_cycles: int
    commands: Mapping[str, int]
    wall_seconds: float

    def quantile(self, share: float) -> int:
        """Latency in cycles that ``share`` of the requests did not exceed."""
        wanted = share * sum(self.latencies)
        total = 0
        for latency, count in enumerate(self.latencies):
            total += count
            if total >= wanted:
                return latency
        return len(self.latencies) - 1

    def to_json(self) -> str:
        """The result as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "TrafficResult":
        """The result that :meth:`to_json` wrote."""
        raw = json.loads(text)
        values = {item.name: raw[item.name] for item in fields(cls)}
        values["outcome"] = TrafficOutcome(values["outcome"])
        values["latencies"] = tuple(values["latencies"])
        values["counters"] = tuple(values["counters"])
        return cls(**values)


class _Pattern(ctypes.Structure):
    _fields_ = (
        ("seed", c_uint64),
        ("accesses", c_uint64),
        ("kind", c_uint32),
        ("stride", c_uint32),
        ("hot", c_uint32),
        ("writes", c_uint32),
        ("partial", c_uint32),
        ("offer", c_uint32),
        ("take", c_uint32),
        ("window", c_uint32),
        ("outside", c_uint32),
        ("burst", c_uint32),
    )


class _Job(ctypes.Structure):
    _fields_ = (
        ("image", c_char_p),
        ("begin", c_uint64),
        ("span", c_uint64),
        ("size", c_uint64),
        ("limit", c_uint64),
        ("max_cycles", c_uint64),
        ("patience", c_uint64),
        ("requesters", c_uint32),
        ("counters", c_uint32),
        ("settle", c_uint32),
    )


class _Result(ctypes.Structure):
    _fields_ = (
        ("cycles", c_uint64),
        ("reads", c_uint64),
        ("writes", c_uint64),
        ("bytes", c_uint64),
        ("longest", c_uint64),
        ("latency_sum", c_uint64),
        ("longest_offer", c_uint64),
        ("total_cycles", c_uint64),
        ("outcome", c_uint32),
        ("latencies", c_uint32 * _LATENCIES),
        ("counters", c_uint64 * _COUNTERS),
    )


class TrafficModel:
    """The traffic model (vault_traffic.h) in a loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.vip_traffic_start.argtypes = (POINTER(_Job), POINTER(_Pattern))
        library.vip_traffic_start.restype = c_int32
        library.vip_traffic_violation.argtypes = ()
        library.vip_traffic_violation.restype = c_char_p
        library.vip_traffic_result.argtypes = (POINTER(_Result),)
        library.vip_traffic_result.restype = None
        library.vip_traffic_cycles.argtypes = ()
        library.vip_traffic_cycles.restype = c_uint64
        self._kept: list[Any] = []

    def start(
        self, job: TrafficJob, image: str, *, size: int, limit: int, counters: int, settle: int
    ) -> None:
        """Start ``job`` at the next clock edge.

        Parameters:
            image: file of the memory.
            size: bytes of the memory.
            limit: bytes that the ports' addresses reach.
            counters: number of counters to read at the end.
            settle: cycles from the last response to reading them.

        Raises:
            OSError: the image can't be mapped or is too small.
        """
        patterns = (_Pattern * len(job.patterns))(
            *(self._pattern(pattern, size, limit) for pattern in job.patterns)
        )
        raw = _Job(
            image=image.encode(),
            begin=job.begin,
            span=job.span,
            size=size,
            limit=limit,
            max_cycles=job.max_cycles,
            patience=job.patience,
            requesters=len(job.patterns),
            counters=counters,
            settle=settle,
        )
        self._kept = [patterns, raw]
        if self.library.vip_traffic_start(byref(raw), patterns):
            raise OSError(f"the memory image {image} can't be used")

    @staticmethod
    def _pattern(pattern: Pattern, size: int, limit: int) -> _Pattern:
        return _Pattern(
            seed=pattern.seed,
            accesses=pattern.accesses,
            kind=pattern.walk,
            stride=pattern.stride,
            hot=pattern.hot,
            writes=round(pattern.writes * _CERTAIN),
            partial=pattern.partial,
            offer=max(1, round(pattern.offer * _CERTAIN)),
            take=max(1, round(pattern.take * _CERTAIN)),
            window=min(pattern.window, 2**32 - 1),
            outside=round(pattern.outside * _CERTAIN) if limit > size else 0,
            burst=pattern.burst,
        )

    def cycles(self) -> int:
        """Clock cycles of the current run."""
        return int(self.library.vip_traffic_cycles())

    def result(self) -> dict[str, Any]:
        """Fields of :class:`TrafficResult` that the model knows, of the run that ended last."""
        raw = _Result()
        self.library.vip_traffic_result(byref(raw))
        answered = int(raw.reads + raw.writes)
        return {
            "outcome": TrafficOutcome(raw.outcome),
            "violation": str(self.library.vip_traffic_violation().decode()),
            "cycles": int(raw.cycles),
            "reads": int(raw.reads),
            "writes": int(raw.writes),
            "bytes": int(raw.bytes),
            "longest": int(raw.longest),
            "mean": raw.latency_sum / answered if answered else 0.0,
            "longest_offer": int(raw.longest_offer),
            "latencies": tuple(raw.latencies),
            "counters": tuple(raw.counters),
            "total_cycles": int(raw.total_cycles),
        }
