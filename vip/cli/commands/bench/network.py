"""``vip bench network``: random traffic through the network, and its latency over the rate."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sim_tb.measure.network import NetworkReport, measure_network
from sim_tb.measure.network_cases import CURVE_SIZES, SIZES
from sim_tb.measure.plots.network import draw_curves
from vip.cli.console import console, shown
from vip.cli.errors import UserError
from vip.output import write_json
from vip.progress import by_part

from ..options import JsonOption, drawing

__all__ = ["network"]


def _chosen(names: list[str]) -> tuple[tuple[int, int], ...]:
    """The sizes called ``names``, all without any, in the order of :data:`SIZES`."""
    known = {f"{columns}x{rows}": (columns, rows) for columns, rows in SIZES}
    for name in names:
        if name not in known:
            raise UserError(f"--size {name}: there are {', '.join(known)}")
    return tuple(size for name, size in known.items() if not names or name in names)


def _show(report: NetworkReport) -> None:
    traffic = Table(title="Random traffic and back-pressure: nothing lost, doubled or out of order")
    traffic.add_column("case")
    for column in ("flits", "cycles", "longest route in cycles"):
        traffic.add_column(column, justify="right")
    for row in report.stress:
        traffic.add_row(row.case, f"{row.flits:,}", f"{row.cycles:,}", f"{row.longest:,}")
    traffic.add_row("all", f"{sum(row.flits for row in report.stress):,}")
    console.print(traffic)
    if not report.curves:
        return
    curves = Table(title="Flits a cycle and sending vault")
    curves.add_column("network")
    for column in ("saturation", "first link full", "idle latency in cycles"):
        curves.add_column(column, justify="right")
    for curve in report.curves:
        curves.add_row(
            f"{curve.columns} x {curve.rows}, {curve.destinations.replace('_', ' ')}",
            f"{curve.saturation:.2f}",
            f"{curve.limit:.2f}",
            f"{curve.points[0].mean:.1f}",
        )
    console.print(curves)


def network(
    flits: Annotated[
        int, typer.Option(help="Of random traffic, in all cases together.", min=1000, max=10**12)
    ] = 1_000_000,
    size: Annotated[
        list[str] | None,
        typer.Option(help="Of this network alone, such as 8x4; may be repeated.", metavar="NAME"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.", min=0, max=2**31)] = 1,
    image: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", callback=drawing(), help="Draw latency over rate as PNG or SVG."
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Random traffic with back-pressure through networks of several sizes; latency over rate.

    Every flit that arrives is checked. Finished cases are cached in the build folder, so that an
    interrupted command continues.

    Example: vip bench network --size 4x4 --flits 5000000 --image network.png
    """
    sizes = _chosen(size or [])
    curve_sizes = tuple(chosen for chosen in CURVE_SIZES if chosen in sizes)
    if image is not None and not curve_sizes:
        known = " and ".join(f"{columns}x{rows}" for columns, rows in CURVE_SIZES)
        raise UserError(f"--image: latency is measured for {known} alone")
    with shown() as progress:
        report = measure_network(
            flits=flits,
            sizes=sizes,
            curve_sizes=curve_sizes,
            seed=seed,
            progress=by_part(progress, "network"),
        )
    if image is not None:
        draw_curves(report.curves, image)
    write_json(json, report.to_dict())
    _show(report)
