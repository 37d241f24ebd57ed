"""Throughput and latency of the network, and its random traffic, cached case by case."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from noc.config import NetworkConfig
from sim_tb.dut.network import network_design
from sim_tb.harness.network import Destinations, NetworkJob, NetworkResult
from sim_tb.harness.traffic_runs import run_network
from sim_tb.runner.cache import Kept

from .network_cases import (
    CURVE_SIZES,
    SIZES,
    StressCase,
    bisection_limit,
    port_limit,
    senders,
    stress_cases,
)

__all__ = ["RATES", "Curve", "NetworkReport", "Point", "StressRow", "measure_network"]

#: Flits made per cycle and vault.
RATES = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 0.99)
#: Cycles of each point, and those of them before measuring.
_CYCLES = 12_000
_WARMUP = 2_000
#: Rates are measured up to so many times that at which the first link or port is full.
_OVERLOAD = 3


@dataclass(frozen=True, kw_only=True)
class StressRow:
    """Result of a case of random traffic with back-pressure, without a fault.

    Attributes:
        case: its name. flits, packets: delivered. cycles: simulated.
        longest: cycles that a packet was in the network.
        cycles_per_second: simulated.
    """

    case: str
    flits: int
    packets: int
    cycles: int
    longest: int
    cycles_per_second: int


@dataclass(frozen=True, kw_only=True)
class Point:
    """One rate of a curve.

    Attributes:
        offered, delivered: flits per cycle and sending vault.
        mean, p99: latency in cycles, from the making of a packet to its last flit.
    """

    offered: float
    delivered: float
    mean: float
    p99: int


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Latency over rate of one network and traffic.

    Attributes:
        columns, rows: of the network. destinations: of the traffic.
        limit: flits per cycle and sending vault at which a link or a vault's port is full.
        bisection: the same for the links between two halves, under uniform traffic.
        points: in the order of :data:`RATES`.
        fastest: by links of the route, the fewest cycles from a header's entry to its exit; 0 where
            no packet had so many.
    """

    columns: int
    rows: int
    destinations: str
    limit: float
    bisection: float
    points: tuple[Point, ...]
    fastest: tuple[int, ...]

    @property
    def saturation(self) -> float:
        """Most that was delivered, in flits per cycle and sending vault."""
        return max(point.delivered for point in self.points)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "Curve":
        """The curve whose fields :func:`dataclasses.asdict` gave."""
        points = tuple(Point(**point) for point in raw["points"])
        return cls(**(dict(raw) | {"points": points, "fastest": tuple(raw["fastest"])}))


@dataclass(frozen=True, kw_only=True)
class NetworkReport:
    """All that was measured; see :func:`measure_network`."""

    stress: tuple[StressRow, ...]
    curves: tuple[Curve, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data: totals first."""
        return {
            "flits": sum(row.flits for row in self.stress),
            "packets": sum(row.packets for row in self.stress),
            "faults": 0,
            **{
                f"saturation_{curve.columns}x{curve.rows}_{curve.destinations}": curve.saturation
                for curve in self.curves
            },
            "stress": [asdict(row) for row in self.stress],
            "curves": [asdict(curve) for curve in self.curves],
        }


def _key(config: NetworkConfig, jobs: Sequence[NetworkJob]) -> str:
    """A row counts only for the very simulator and jobs that made it."""
    return f"{network_design(config).key} {json.dumps([asdict(job) for job in jobs])}"


def _stress_row(case: StressCase) -> dict[str, Any]:
    (result,) = run_network(case.config, [case.job])
    return asdict(
        StressRow(
            case=case.name,
            flits=sum(result.flits),
            packets=sum(result.packets),
            cycles=result.cycles,
            longest=result.longest,
            cycles_per_second=round(result.cycles / result.wall_seconds),
        )
    )


def _curve_jobs(config: NetworkConfig, destinations: Destinations, seed: int) -> list[NetworkJob]:
    """A run for each rate, up to a few times the network's limit: higher rates add nothing."""
    base = NetworkJob(destinations=destinations, cycles=_CYCLES, warmup=_WARMUP, seed=seed)
    most = _OVERLOAD * port_limit(config, destinations, base.hot)
    return [replace(base, rate=rate) for rate in RATES if rate <= most]


def _curve(config: NetworkConfig, jobs: Sequence[NetworkJob]) -> dict[str, Any]:
    destinations = jobs[0].destinations
    results = run_network(config, jobs)
    share = 1 / ((_CYCLES - _WARMUP) * senders(config, destinations))
    return asdict(
        Curve(
            columns=config.columns,
            rows=config.rows,
            destinations=destinations.name.lower(),
            limit=round(port_limit(config, destinations, jobs[0].hot), 4),
            bisection=round(bisection_limit(config), 4),
            points=tuple(
                Point(
                    offered=job.rate,
                    delivered=round(result.measured_flits * share, 4),
                    mean=round(result.mean, 2),
                    p99=result.quantile(0.99),
                )
                for job, result in zip(jobs, results, strict=True)
            ),
            fastest=_fastest(results),
        )
    )


def _fastest(results: Sequence[NetworkResult]) -> tuple[int, ...]:
    by_links = zip(*(result.fastest for result in results), strict=True)
    fastest = [min((cycles for cycles in found if cycles), default=0) for found in by_links]
    while fastest and not fastest[-1]:
        fastest.pop()
    return tuple(fastest)


def measure_network(
    *,
    flits: int,
    sizes: tuple[tuple[int, int], ...] = SIZES,
    curve_sizes: tuple[tuple[int, int], ...] = CURVE_SIZES,
    seed: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
) -> NetworkReport:
    """Run the cases of :func:`sim_tb.measure.network_cases.stress_cases`, and latency over rate.

    Each case that has run is cached in the build folder, so that an interrupted run goes on.

    Parameters:
        flits: of all cases together, 1000 or more.
        sizes: columns and rows of the networks with random traffic.
        curve_sizes: of those whose latency is measured.
        seed: of everything random.
        progress: called before each case, with its name, the cases done, and all.

    Raises:
        NetworkError: the network did something wrong.
        sim_tb.runner.build.BuildError: a simulator can't be built.
    """
    kept = Kept("network_rows")
    cases = stress_cases(sizes, flits=flits, seed=seed)
    curves = [
        (NetworkConfig(columns=columns, rows=rows), kind)
        for columns, rows in curve_sizes
        for kind in Destinations
    ]
    total = len(cases) + len(curves)
    tell = progress or (lambda name, done, of: None)
    stress = []
    for number, case in enumerate(cases):
        tell(case.name, number, total)
        row = kept.get(_key(case.config, [case.job]), partial(_stress_row, case))
        stress.append(StressRow(**row))
    found = []
    for number, (config, kind) in enumerate(curves):
        tell(f"{config.columns} x {config.rows}, {kind.name.lower()}", len(cases) + number, total)
        jobs = _curve_jobs(config, kind, seed)
        row = kept.get(_key(config, jobs), partial(_curve, config, jobs))
        found.append(Curve.from_dict(row))
    return NetworkReport(stress=tuple(stress), curves=tuple(found))
