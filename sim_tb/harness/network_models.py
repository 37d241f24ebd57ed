"""The traffic model of a simulated network as seen from Python: jobs, results, C++ functions."""

import ctypes
import json
from collections.abc import Mapping
from ctypes import POINTER, byref, c_char_p, c_uint32, c_uint64
from dataclasses import asdict, dataclass, fields
from enum import IntEnum
from typing import Any

from isa.support.errors import VipError
from noc.config import NetworkConfig

__all__ = [
    "Destinations",
    "NetworkError",
    "NetworkJob",
    "NetworkModel",
    "NetworkOutcome",
    "NetworkResult",
]

_CERTAIN = 65536
_CLASSES = 2
_LATENCIES = 4096
_HOPS = 32
#: A number that no run reaches.
_NEVER = 2**62


class NetworkError(VipError):
    """A run in which the network did not do as it must, or that can't be made; says why."""


class Destinations(IntEnum):
    """Where the packets of a vault go."""

    #: Any other vault.
    UNIFORM = 0
    #: The vault in column x and row y sends to number ``x * rows + y``; some send to nobody.
    TRANSPOSE = 1
    #: The next vault in the east, or in a single column in the south.
    NEIGHBOUR = 2
    #: A share to vault 0, the others to any other vault.
    HOT_SPOT = 3


class NetworkOutcome(IntEnum):
    """How a run went."""

    DONE = 0
    #: The network broke a rule; :attr:`NetworkResult.violation` says which.
    VIOLATION = 1
    TOO_LONG = 2


@dataclass(frozen=True, kw_only=True)
class NetworkJob:
    """One run of traffic.

    Attributes:
        destinations: see :class:`Destinations`.
        hot: share of the packets that go to vault 0, for :attr:`Destinations.HOT_SPOT`; 0..1.
        flits: no packet is made any more after so many flits; 0: no limit.
        cycles: nor after so many cycles; 0: no limit. One of the two is needed.
        warmup: cycles after which what happens counts for rates and latencies.
        rate: flits made per cycle and vault, above 0, up to 1; 1: a new packet of each class
            whenever the last one has left.
        shortest, longest: flits of a packet; any length between is as likely.
        offer: chance per cycle that a vault offers a flit; above 0, up to 1.
        take: chance per cycle and class that a vault takes a flit; above 0, up to 1.
        pause: a vault takes nothing for up to so many cycles now and then; 0: never.
        answers: a response is made of each request that is taken, and of nothing else, and a vault
            with four responses to send takes no request.
        patience: cycles after which a packet in the network counts as lost.
        max_cycles: a run that takes longer is an error.
        seed: of everything random; 0..2**32.

    Raises:
        ValueError: a value outside its range.
    """

    destinations: Destinations = Destinations.UNIFORM
    hot: float = 0.25
    flits: int = 0
    cycles: int = 0
    warmup: int = 0
    rate: float = 1.0
    shortest: int = 1
    longest: int = 5
    offer: float = 1.0
    take: float = 1.0
    pause: int = 0
    answers: bool = False
    patience: int = 1_000_000
    max_cycles: int = 1_000_000_000
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("rate", "offer", "take"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1, not {getattr(self, name)}")
        if not 0 <= self.hot <= 1:
            raise ValueError(f"hot must be from 0 to 1, not {self.hot}")
        for name, low in (("flits", 0), ("cycles", 0), ("warmup", 0), ("pause", 0)):
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be {low} or more, not {getattr(self, name)}")
        if not self.flits and not self.cycles:
            raise ValueError("a run needs a limit of flits or of cycles")
        if not 1 <= self.shortest <= self.longest <= 255:
            raise ValueError(
                f"shortest and longest must be in order and from 1 to 255, not {self.shortest} and "
                f"{self.longest}"
            )
        if not 0 <= self.seed <= 2**32:
            raise ValueError(f"seed must be from 0 to 2**32, not {self.seed}")

    def to_dict(self) -> dict[str, Any]:
        """The job as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "NetworkJob":
        """The job that :meth:`to_dict` made."""
        return cls(**(dict(raw) | {"destinations": Destinations(raw["destinations"])}))


@dataclass(frozen=True, kw_only=True)
class NetworkResult:
    """What became of a run.

    Attributes:
        outcome: how it ended. violation: the rule that was broken first, "" if none.
        cycles: of the run.
        packets, flits: delivered, requests and responses.
        measured_flits: delivered from ``warmup`` to ``cycles`` of the job.
        mean: latency in cycles, from the making of a packet to its last flit, of those that were
            made in that time.
        latencies: these packets by latency; the last place also has all longer ones.
        longest: cycles that a packet was in the network.
        fastest: by links on the way, the fewest cycles from a header's entry to its exit; 0 where
            there was none.
        wall_seconds: of simulation.
    """

    outcome: NetworkOutcome
    violation: str
    cycles: int
    packets: tuple[int, int]
    flits: tuple[int, int]
    measured_flits: int
    mean: float
    latencies: tuple[int, ...]
    longest: int
    fastest: tuple[int, ...]
    wall_seconds: float

    def quantile(self, share: float) -> int:
        """Latency in cycles that ``share`` of the packets did not exceed."""
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
    def from_json(cls, text: str) -> "NetworkResult":
        """The result that :meth:`to_json` wrote."""
        raw = json.loads(text)
        values = {item.name: raw[item.name] for item in fields(cls)}
        values["outcome"] = NetworkOutcome(values["outcome"])
        for name in ("packets", "flits", "latencies", "fastest"):
            values[name] = tuple(values[name])
        return cls(**values)


class _Job(ctypes.Structure):
    _fields_ = (
        ("seed", c_uint64),
        ("flits", c_uint64),
        ("cycles", c_uint64),
        ("warmup", c_uint64),
        ("max_cycles", c_uint64),
        ("patience", c_uint64),
        ("columns", c_uint32),
        ("rows", c_uint32),
        ("buffer_flits", c_uint32),
        ("pattern", c_uint32),
        ("hot", c_uint32),
        ("rate", c_uint32),
        ("shortest", c_uint32),
        ("longest", c_uint32),
        ("offer", c_uint32),
        ("take", c_uint32),
        ("pause", c_uint32),
        ("answers", c_uint32),
    )


class _Result(ctypes.Structure):
    _fields_ = (
        ("cycles", c_uint64),
        ("packets", c_uint64 * _CLASSES),
        ("flits", c_uint64 * _CLASSES),
        ("measured_flits", c_uint64),
        ("latency_sum", c_uint64),
        ("latency_count", c_uint64),
        ("longest", c_uint64),
        ("outcome", c_uint32),
        ("reserved", c_uint32),
        ("latencies", c_uint64 * _LATENCIES),
        ("fastest", c_uint64 * _HOPS),
    )


class NetworkModel:
    """The traffic model (network_traffic.h) in a loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.vip_network_start.argtypes = (POINTER(_Job),)
        library.vip_network_start.restype = None
        library.vip_network_violation.argtypes = ()
        library.vip_network_violation.restype = c_char_p
        library.vip_network_result.argtypes = (POINTER(_Result),)
        library.vip_network_result.restype = None

    def start(self, job: NetworkJob, config: NetworkConfig) -> None:
        """Start ``job`` at the next clock edge, on a network of ``config``."""
        raw = _Job(
            seed=job.seed,
            flits=job.flits or _NEVER,
            cycles=job.cycles or _NEVER,
            warmup=job.warmup,
            max_cycles=job.max_cycles,
            patience=job.patience,
            columns=config.columns,
            rows=config.rows,
            buffer_flits=config.buffer_flits,
            pattern=job.destinations,
            hot=round(job.hot * _CERTAIN),
            rate=max(1, round(job.rate * _CERTAIN)),
            shortest=job.shortest,
            longest=job.longest,
            offer=max(1, round(job.offer * _CERTAIN)),
            take=max(1, round(job.take * _CERTAIN)),
            pause=job.pause,
            answers=job.answers,
        )
        self.library.vip_network_start(byref(raw))

    def result(self) -> dict[str, Any]:
        """Fields of :class:`NetworkResult` that the model knows, of the run that ended last."""
        raw = _Result()
        self.library.vip_network_result(byref(raw))
        count = int(raw.latency_count)
        return {
            "outcome": NetworkOutcome(raw.outcome),
            "violation": str(self.library.vip_network_violation().decode()),
            "cycles": int(raw.cycles),
            "packets": tuple(raw.packets),
            "flits": tuple(raw.flits),
            "measured_flits": int(raw.measured_flits),
            "mean": raw.latency_sum / count if count else 0.0,
            "latencies": tuple(raw.latencies),
            "longest": int(raw.longest),
            "fastest": tuple(raw.fastest),
        }
