"""The report page: one HTML file with everything in it."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from synth.physical.area import MEASURES
from synth.physical.devices import find_device
from synth.power.power import THESIS_MHZ
from vip.output import provenance
from vip.synthesis.power import KERNELS

from .collect import Report

__all__ = ["page"]

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;"
    "color:#222}img{max-width:100%}table{border-collapse:collapse;margin:1em 0}"
    "td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left}footer{color:#777;font-size:13px}"
)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{cells}</tr>{body}</table>"


def _path(steps: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{unit} {ns:.2f} ns" for unit, ns in steps)


def _area(report: Report) -> str:
    total = sum(row.ours for row in report.beside)
    return _table(
        ("component", "Table 7.4, µm²", "ours, µm²", "of it memories", "share"),
        (
            (
                row.component,
                f"{row.thesis:,.0f}",
                f"{row.ours:,.0f}",
                f"{row.memories:,.0f}",
                f"{row.ours / total:.1%}",
            )
            for row in report.beside
        ),
    )


def _netlists(report: Report) -> str:
    area = report.area.total.values["logic_ge"]
    rows: list[tuple[str, ...]] = [("generic", f"{area / 1000:.1f}", "none", "none")]
    for netlist in report.netlists:
        pins, wires = (netlist.corners[0].pins, netlist.corners[0].wires)
        clocks = (f"{path.fmax_mhz:,.0f}" for path in (pins, wires))
        rows.append((netlist.target, f"{netlist.logic_ge / 1000:.1f}", *clocks))
    return _table(("netlist", "kGE", "MHz, pins alone", "MHz, the library's wires"), rows)


def _clock(report: Report) -> str:
    rows = [*(row for row in report.cells.rows if row.path), report.cells.total]
    return _table(
        ("unit", "kGE", "MHz", "longest path"),
        (
            (
                row.unit,
                f"{row.values['logic_ge'] / 1000:.1f}",
                f"{row.values['fmax_mhz']:,.0f}",
                _path(row.path),
            )
            for row in rows
        ),
    )


def _power(report: Report) -> str:
    rows = []
    for kernel, estimate in report.power.items():
        scaled = estimate.at_thesis_node()
        unit = next(iter(estimate.work))
        rows.append(
            (
                KERNELS[kernel],
                f"{estimate.total.milliwatts(1000):.1f}",
                f"{scaled.total.milliwatts(THESIS_MHZ):.1f}",
                f"{scaled.energy_pj(unit, THESIS_MHZ):,.1f} pJ a {unit}",
            )
        )
    head = ("kernel", "mW at 45 nm, 1 GHz", f"mW at 28 nm, {THESIS_MHZ:g} MHz", "energy at 28 nm")
    return _table(head, rows)


def _devices(report: Report) -> str:
    placed = {placement.device.name: placement for placement in report.placed}
    rows = []
    for name in dict.fromkeys((*report.fits, *placed)):
        placement = placed.get(name)
        number = report.fits[name] if placement is None else placement.device.copies(placement.used)
        clock = "not placed" if placement is None else f"{placement.fmax_mhz:.1f}"
        path = "" if placement is None else _path(placement.path)
        rows.append((find_device(name).part, str(number), clock, path))
    return _table(("device", "engines that fit", "MHz, median of seeds", "longest path"), rows)


def page(report: Report, figures: Mapping[str, bytes]) -> str:
    """The page's HTML.

    Parameters:
        figures: name -> PNG, of those of :data:`vip.reports.figures.FIGURES`.
    """
    pictures = {
        name: f'<img alt="{name}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
        for name, png in figures.items()
    }
    origin = ", ".join(f"{key}: {value}" for key, value in provenance().items())
    parts = [
        "<h2>Area</h2>",
        pictures["area"],
        f"<p>{escape(MEASURES['area_um2'])}.</p>",
        _area(report),
        "<h2>Clock in standard cells</h2>",
        "<p>Each row is a netlist of its own: no netlist has the least area and the highest clock. "
        "The area above is of generic, the paths below are of nangate45.</p>",
        _netlists(report),
        pictures["clock"],
        _clock(report),
        "<h2>Power</h2>",
        pictures["power"],
        _power(report),
        "<h2>Area over parameters</h2>",
        pictures["scaling"],
        "<p>The datapath's 64 bits are no parameter.</p>",
        "<h2>On FPGAs</h2>",
        _devices(report),
    ]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(report.name)}'
        f"</title><style>{_STYLE}</style><h1>Engine {escape(report.name)}</h1>"
        + "\n".join(parts)
        + f"<footer>{escape(origin)}</footer></html>\n"
    )
