"""The network: random traffic with back-pressure, latency over rate, area."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hdl.component import Component
from hdl.config import SramKind
from noc.config import NetworkConfig
from noc.node.node import Node
from noc.router.router import Router
from noc.routing import LOCAL, route
from sim_tb.dut.network import network_design
from sim_tb.harness.network import Destinations, FlitJob
from sim_tb.harness.traffic_runs import run_network
from soc.generate.presets import chip_preset
from support.cache import ResultCache
from support.picture import COLOURS, MARKERS, picture

from .harness.experiment import (
    SIMULATION,
    SYNTHESIS,
    BenchError,
    Measurement,
    NamesOption,
    PictureOption,
    SeedOption,
    chosen,
    experiment,
    figure,
    say,
)
from .harness.parts import part_area

#: Columns and rows of the networks that take random traffic with random back-pressure: rings of
#: two to five and eight, with one virtual channel and with two, and numbers that are not a power of
#: two.
SIZES = ((2, 2), (3, 3), (4, 2), (5, 3), (4, 4), (8, 4))

#: Of these, those whose latency is measured over the rate.
CURVE_SIZES = ((4, 4), (8, 4))


def stress_cases(
    sizes: tuple[tuple[int, int], ...] = SIZES, *, flits: int, seed: int
) -> dict[str, tuple[NetworkConfig, FlitJob]]:
    """By name, cases of ``flits`` together: for each size and each of :class:`Destinations`, once
    with independent requests and responses, once with responses that answer requests.

    Links are saturated, packets have all lengths, and vaults offer and accept at random and
    sometimes pause for up to 300 cycles.
    """
    kinds = [(kind, answers) for kind in Destinations for answers in (False, True)]
    share = -(-flits // (len(sizes) * len(kinds)))
    cases = {}
    for columns, rows in sizes:
        config = NetworkConfig(columns=columns, rows=rows)
        for number, (kind, answers) in enumerate(kinds):
            job = FlitJob(
                destinations=kind,
                flits=share,
                longest=config.packet_flits,
                offer=0.9,
                take=0.8,
                pause=300,
                answers=answers,
                seed=seed + number,
            )
            target = kind.name.lower().replace("_", "-")
            name = f"{columns} x {rows}, {target}, {'answers' if answers else 'both classes'}"
            cases[name] = config, job
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


#: Flits made per cycle and vault.
RATES = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 0.99)

#: Cycles of each point, and those of them before measuring.
_CYCLES = 12_000

_WARMUP = 2_000

#: Highest measured rate, as a multiple of that at which the first link or port is full.
_OVERLOAD = 3


@dataclass(frozen=True, kw_only=True)
class LoadCurve:
    """Latency over rate of one network and traffic.

    Attributes:
        columns, rows: of the network. destinations: of the traffic.
        limit: flits per cycle per sending vault at which a link or a vault's port is full.
        bisection: the same for the links between two halves, under uniform traffic.
        points: in the order of :data:`RATES`, offered and delivered flits per cycle per sending
            vault, and the mean latency in cycles, from a packet's creation to its last flit.
    """

    columns: int
    rows: int
    destinations: str
    limit: float
    bisection: float
    points: Sequence[tuple[float, float, float]]

    @property
    def saturation(self) -> float:
        """Highest delivered rate, in flits per cycle per sending vault."""
        return max(delivered for _, delivered, _ in self.points)


def _row_key(config: NetworkConfig, jobs: Sequence[FlitJob]) -> str:
    """A row is valid only for the same simulator and jobs."""
    return f"{network_design(config).key} {json.dumps([asdict(job) for job in jobs])}"


def _stress_row(config: NetworkConfig, job: FlitJob) -> dict[str, int]:
    """Flits and packets that were delivered, simulated cycles, and the longest that a packet was in
    the network, in cycles."""
    (result,) = run_network(config, [job])
    return {
        "flits": sum(result.flits),
        "packets": sum(result.packets),
        "cycles": result.cycles,
        "longest": result.longest,
    }


def _curve_jobs(config: NetworkConfig, destinations: Destinations, seed: int) -> list[FlitJob]:
    """A run for each rate, up to a few times the network's limit: higher rates add nothing."""
    base = FlitJob(destinations=destinations, cycles=_CYCLES, warmup=_WARMUP, seed=seed)
    highest = _OVERLOAD * port_limit(config, destinations, base.hot)
    return [replace(base, rate=rate) for rate in RATES if rate <= highest]


if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES_EACH = (5.2, 6.4)

#: Higher latencies are not shown: the network is saturated.
_MOST_CYCLES = 120


def draw_curves(curves: Sequence[LoadCurve], path: Path) -> None:
    """Write a picture: for each network, latency and delivered flits over offered flits.

    Dotted lines show the rate at which a link or port is full, dashed lines that of
    the links between two halves of the network under uniform traffic.

    Parameters:
        curves: at least one.
        path: file to write; replaced only when the picture is complete.

    Raises:
        OSError: the file can't be written.
    """
    sizes = list(dict.fromkeys((curve.columns, curve.rows) for curve in curves))
    width, height = _INCHES_EACH
    with picture(width * len(sizes), height, path) as drawing:
        axes = drawing.subplots(2, len(sizes), sharex=True, sharey="row", squeeze=False)
        for column, size in enumerate(sizes):
            mine = [curve for curve in curves if (curve.columns, curve.rows) == size]
            _draw_network(axes[0][column], axes[1][column], mine)
        axes[0][0].set_ylabel("mean latency in cycles")
        axes[1][0].set_ylabel("delivered, flits per cycle per vault")
        # Every network has the same lines; one legend below names them once.
        handles, labels = axes[0][0].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside lower center", ncols=3)


def _draw_network(latency: "Axes", delivered: "Axes", curves: Sequence[LoadCurve]) -> None:
    first = curves[0]
    for axis in (latency, delivered):
        for number, curve in enumerate(curves):
            offered, rate, mean = zip(*curve.points, strict=True)
            axis.plot(
                offered,
                mean if axis is latency else rate,
                f"{MARKERS[number % len(MARKERS)]}-",
                markersize=3.5,
                color=COLOURS[number % len(COLOURS)],
                label=curve.destinations.replace("_", " "),
            )
        for number, curve in enumerate(curves):
            axis.axvline(
                curve.limit,
                color=COLOURS[number % len(COLOURS)],
                linewidth=1.0,
                linestyle=":",
                label=f"first link or port full: {curve.destinations.replace('_', ' ')}",
            )
        axis.axvline(
            min(first.bisection, 1.0),
            color="black",
            linewidth=1.0,
            linestyle="--",
            label="bisection full, uniform traffic (at most 1)",
        )
        axis.grid()
        axis.set(xlim=(0, 1.05))
    latency.set(title=f"{first.columns} x {first.rows} vaults", ylim=(0, _MOST_CYCLES))
    delivered.set(xlabel="offered, flits per cycle per sending vault", ylim=(0, 1.05))


@experiment(tools=SIMULATION, minutes=90)
def network(
    flits: Annotated[
        int, typer.Option(help="Of random traffic, in all cases together.", min=1000, max=10**12)
    ] = 105_000_000,
    only: NamesOption = None,
    seed: SeedOption = 1,
    picture: PictureOption = None,
) -> Iterator[Measurement]:
    """Random traffic with back-pressure through networks of six sizes, and latency over rate.

    Every flit that arrives is checked. Finished cases are cached, so that an interrupted command
    continues. The picture has latency over rate, which is measured for 4x4 and 8x4 alone.

    Example: vip bench network --only 4x4 --flits 5000000 --picture network.png
    """
    sizes = {f"{columns}x{rows}": (columns, rows) for columns, rows in SIZES}
    run = tuple(sizes[name] for name in chosen(only, sizes))
    curve_sizes = [size for size in CURVE_SIZES if size in run]
    if picture is not None and not curve_sizes:
        drawn = " and ".join(f"{columns}x{rows}" for columns, rows in CURVE_SIZES)
        raise BenchError(f"--picture: latency is measured for {drawn} alone")
    results = ResultCache("network_rows")
    stress: dict[str, dict[str, int]] = {}
    for name, case in stress_cases(run, flits=flits, seed=seed).items():
        say(name)
        config, job = case
        stress[name] = results.get(_row_key(config, [job]), partial(_stress_row, config, job))
    for name in ("flits", "packets"):
        yield Measurement(name, sum(row[name] for row in stress.values()), name, 0.0, True)
    yield Measurement("cases", len(stress), "networks and traffics", 0.0, True)
    for name, row in stress.items():
        key = figure(name)
        yield Measurement(f"{key}_flits", row["flits"], "flits", 0.01, True)
        yield Measurement(f"{key}_cycles", row["cycles"], "cycles", 0.01)
        yield Measurement(f"{key}_longest", row["longest"], "cycles", 0.05)
    curves = [measure_curve(size, kind, seed) for size in curve_sizes for kind in Destinations]
    for curve in curves:
        key = f"{curve.columns}x{curve.rows}_{figure(curve.destinations)}"
        yield Measurement(f"{key}_limit", curve.limit, "flits a cycle and vault")
        yield Measurement(f"{key}_most", curve.saturation, "flits a cycle and vault", 0.01, True)
        yield Measurement(f"{key}_idle_latency", curve.points[0][2], "cycles", 0.01)
    if picture is not None:
        draw_curves(curves, picture)


def measure_curve(size: tuple[int, int], destinations: Destinations, seed: int) -> LoadCurve:
    """Latency over rate of a network of columns and rows. The result is cached on disk.

    Raises:
        NetworkError: the network did something wrong.
        sim_tb.runner.build.BuildError: a simulator can't be built.
    """
    say(f"{size[0]} x {size[1]}, {destinations.name.lower()}")
    config = NetworkConfig(columns=size[0], rows=size[1])
    jobs = _curve_jobs(config, destinations, seed)

    def points() -> list[tuple[float, float, float]]:
        share = 1 / ((_CYCLES - _WARMUP) * senders(config, destinations))
        return [
            (job.rate, round(result.measured_flits * share, 4), round(result.mean, 2))
            for job, result in zip(jobs, run_network(config, jobs), strict=True)
        ]

    return LoadCurve(
        columns=config.columns,
        rows=config.rows,
        destinations=destinations.name.lower(),
        limit=round(port_limit(config, destinations, jobs[0].hot), 4),
        bisection=round(bisection_limit(config), 4),
        points=ResultCache("network_points").get(_row_key(config, jobs), points),
    )


@experiment(tools=SYNTHESIS, minutes=2)
def network_area() -> Iterator[Measurement]:
    """Area of routers and of a node: gate equivalents beside the memories, and 7-series."""
    thesis = chip_preset("thesis")
    large = thesis.network
    small = replace(large, columns=2, rows=2)

    def router(config: NetworkConfig, sram: SramKind) -> Component:
        return Router(replace(config, sram=sram))

    def node(sram: SramKind) -> Component:
        return Node(replace(large, sram=sram), requesters=thesis.tile.pes + 1)

    kge = part_area(partial(router, large), "generic")["logic_ge"] / 1000
    yield Measurement("router_8x4_kge", kge, "kGE", 0.01)
    for name, make in (
        ("router_8x4", partial(router, large)),
        ("router_2x2", partial(router, small)),
        ("node_8x4", node),
    ):
        values = part_area(make, "xc7")
        yield Measurement(f"{name}_luts", values["luts"], "luts", 0.01)
        yield Measurement(f"{name}_ffs", values["ffs"], "ffs", 0.01)
