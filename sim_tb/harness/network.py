"""Runs of traffic through a network, as exchanged with the simulator."""

from ctypes import c_uint64
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Annotated

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from noc.config import CLASSES
from noc.ports import LinkPort
from support.errors import VipError
from support.schema import C, Chance, Share, Text

from .models import Library, Model
from .traffic import TrafficOutcome

_LATENCIES = 4096
_HOPS = 32
#: 0 means no limit: the model gets a number that no run reaches.
_Limit = Annotated[int, C(c_uint64, lambda limit: limit or 2**62)]


class NetworkError(VipError):
    """A network that misbehaved, or a run that is impossible; the message says why."""


class Destinations(IntEnum):
    """Destinations of the packets of a vault."""

    #: Any other vault.
    UNIFORM = 0
    #: The vault in column x and row y sends to number ``x * rows + y``; some send nothing.
    TRANSPOSE = 1
    #: The next vault in the east, or in a single column in the south.
    NEIGHBOUR = 2
    #: A share to vault 0, the rest to any other vault.
    HOT_SPOT = 3


@dataclass(frozen=True, kw_only=True)
class FlitJob:
    """One run of traffic.

    Attributes:
        destinations: see :class:`Destinations`.
        hot: share of the packets that go to vault 0, for :attr:`Destinations.HOT_SPOT`; 0..1.
        flits: generate no packet after this many flits; 0: no limit.
        cycles: generate no packet after this many cycles; 0: no limit. One limit is required.
        warmup: cycles before traffic counts for rates and latencies.
        rate: flits generated per cycle per vault, above 0, up to 1; 1: a new packet of each class
            whenever the last one has left.
        shortest, longest: flits per packet; all lengths between are equally likely.
        offer: chance per cycle that a vault offers a flit; above 0, up to 1.
        take: chance per cycle and class that a vault takes a flit; above 0, up to 1.
        pause: a vault occasionally accepts nothing for up to this many cycles; 0: never.
        answers: only requests taken produce responses, one each; a vault with four responses to
            send takes no request.
        patience: cycles after which a packet in the network counts as lost.
        max_cycles: a run that takes longer is an error.
        seed: of the random choices; 0..2**32.
        columns, rows, buffer_flits: of the network (:class:`noc.config.NetworkConfig`);
            :func:`.traffic_runs.run_network` sets them.

    Raises:
        ValueError: a value outside its range.
    """

    destinations: Destinations = Destinations.UNIFORM
    hot: Share = 0.25
    flits: _Limit = 0
    cycles: _Limit = 0
    warmup: int = 0
    rate: Chance = 1.0
    shortest: int = 1
    longest: int = 5
    offer: Chance = 1.0
    take: Chance = 1.0
    pause: int = 0
    answers: bool = False
    patience: int = 1_000_000
    max_cycles: int = 1_000_000_000
    seed: int = 1
    columns: int = 0
    rows: int = 0
    buffer_flits: int = 0

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

    def start(self, library: Library) -> None:
        library.start("network", self)

    def progress(self, library: Library) -> int:
        return library.result("network", NetworkResult).cycles

    def result(self, library: Library, seconds: float) -> "NetworkResult":
        return replace(library.result("network", NetworkResult), wall_seconds=seconds)


@dataclass(frozen=True, kw_only=True)
class NetworkResult:
    """Result of a run.

    Attributes:
        outcome: how it ended. violation: the rule that was broken first, "" if none.
        cycles: of the run.
        packets, flits: delivered, requests and responses.
        measured_flits: delivered from ``warmup`` to ``cycles`` of the job.
        latency_sum: cycles from a packet's generation to its last flit, over the packets generated
            in that interval. latency_count: number of these packets.
        latencies: these packets by latency; the last entry includes all longer latencies.
        longest: most cycles that a packet was in the network.
        fastest: number of links -> fewest cycles from a header's entry to its exit; 0 if there was
            no such packet.
        wall_seconds: of simulation.
    """

    outcome: TrafficOutcome
    violation: Text
    cycles: int
    packets: Annotated[tuple[int, int], C(c_uint64 * CLASSES)]
    flits: Annotated[tuple[int, int], C(c_uint64 * CLASSES)]
    measured_flits: int
    latency_sum: int
    latency_count: int
    latencies: Annotated[tuple[int, ...], C(c_uint64 * _LATENCIES)]
    longest: int
    fastest: Annotated[tuple[int, ...], C(c_uint64 * _HOPS)]
    wall_seconds: float = 0.0

    @property
    def mean(self) -> float:
        """Mean latency in cycles of the measured packets."""
        return self.latency_sum / self.latency_count if self.latency_count else 0.0


NETWORK = Model(
    name="network",
    signature=wiring.Signature({"reset": Out(1), "idle": Out(1)}),
    job=FlitJob,
    result=NetworkResult,
    sources=("network_traffic.cpp",),
)
#: Model of a vault's end of the network.
VAULT = Model(
    name="network_vault",
    signature=wiring.Signature({"in": Out(LinkPort(CLASSES)), "out": In(LinkPort(CLASSES))}),
    sources=(),
)
