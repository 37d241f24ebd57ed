"""The networks and traffics that are run, and the best possible throughput of each."""

from collections import defaultdict
from dataclasses import dataclass

from noc.config import NetworkConfig
from noc.routing import LOCAL, route
from sim_tb.harness.network import Destinations, NetworkJob

__all__ = [
    "CURVE_SIZES",
    "SIZES",
    "StressCase",
    "bisection_limit",
    "port_limit",
    "senders",
    "stress_cases",
]

#: Columns and rows of the networks that take random traffic with random back-pressure: rings of
#: two to five and eight, with one virtual channel and with two, and numbers that are no power of
#: two.
SIZES = ((2, 2), (3, 3), (4, 2), (5, 3), (4, 4), (8, 4))
#: Of these, those whose latency is measured over the rate.
CURVE_SIZES = ((4, 4), (8, 4))


@dataclass(frozen=True, kw_only=True)
class StressCase:
    """Traffic with random back-pressure on one network.

    Attributes:
        config: of the network.
        job: of the traffic.
    """

    config: NetworkConfig
    job: NetworkJob

    @property
    def name(self) -> str:
        """Size, destinations, and whether responses answer requests."""
        kind = self.job.destinations.name.lower().replace("_", "-")
        answers = "answers" if self.job.answers else "both classes"
        return f"{self.config.columns} x {self.config.rows}, {kind}, {answers}"


def stress_cases(
    sizes: tuple[tuple[int, int], ...] = SIZES, *, flits: int, seed: int
) -> list[StressCase]:
    """Cases of ``flits`` together: of each size each of :class:`Destinations`, once with requests
    and responses that know nothing of each other, once with responses that answer requests.

    Links run full, packets have one flit to the longest, vaults offer and take at random and rest
    at times for up to 300 cycles.
    """
    kinds = [(kind, answers) for kind in Destinations for answers in (False, True)]
    each = -(-flits // (len(sizes) * len(kinds)))
    cases = []
    for columns, rows in sizes:
        config = NetworkConfig(columns=columns, rows=rows)
        for number, (kind, answers) in enumerate(kinds):
            job = NetworkJob(
                destinations=kind,
                flits=each,
                longest=config.packet_flits,
                offer=0.9,
                take=0.8,
                pause=300,
                answers=answers,
                seed=seed + number,
            )
            cases.append(StressCase(config=config, job=job))
    return cases


def _shares(
    config: NetworkConfig, destinations: Destinations, hot: float
) -> dict[tuple[int, int], float]:
    """Share of each vault's traffic that goes to each other vault."""
    vaults = config.vaults
    shares: dict[tuple[int, int], float] = {}
    for source in range(vaults):
        x, y = source % config.columns, source // config.columns
        single = {
            Destinations.TRANSPOSE: x * config.rows + y,
            Destinations.NEIGHBOUR: (x + 1) % config.columns + y * config.columns
            if config.columns > 1
            else (y + 1) % config.rows,
        }
        if destinations in single:
            shares[source, single[destinations]] = 1.0
            continue
        favoured = hot if destinations is Destinations.HOT_SPOT and source else 0.0
        for target in range(vaults):
            if target != source:
                shares[source, target] = (1 - favoured) / (vaults - 1)
        if favoured:
            shares[source, 0] += favoured
    return {pair: share for pair, share in shares.items() if pair[0] != pair[1]}


def senders(config: NetworkConfig, destinations: Destinations) -> int:
    """Vaults that send anything."""
    return len({source for source, _ in _shares(config, destinations, 0.0)})


def port_limit(config: NetworkConfig, destinations: Destinations, hot: float) -> float:
    """Flits per cycle and sending vault at which some link, or some vault's port, is full.

    The loads follow from the route of each packet (:func:`noc.routing.route`); no network of
    these links with this routing can do more.
    """
    loads: defaultdict[tuple[int, str], float] = defaultdict(float)
    into: defaultdict[int, float] = defaultdict(float)
    for (source, target), share in _shares(config, destinations, hot).items():
        loads[source, LOCAL] += share
        into[target] += share
        for channel in route(config, source, target, 0, config.virtual_channels):
            loads[channel.vault, channel.direction] += share
    return 1 / max(*loads.values(), *into.values())


def bisection_limit(config: NetworkConfig) -> float:
    """Flits per cycle and vault of uniform traffic at which the links between two halves are full.

    The longer side is cut; each half of it is ``side // 2`` long or one more. Rings are cut twice,
    and a ring of two has two links in each direction as well.
    """
    side, other = max(config.columns, config.rows), min(config.columns, config.rows)
    smaller = side // 2 * other
    larger = config.vaults - smaller
    crossing = smaller * larger / (config.vaults - 1)
    return 2 * other / crossing
