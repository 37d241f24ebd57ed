"""The figures of the report page, as PNG."""

from collections.abc import Callable, Mapping
from io import BytesIO

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from synth.power import THESIS_MHZ, PowerReport

from .report import KERNELS, Report

__all__ = ["FIGURES"]

_THESIS, _LOGIC, _MEMORIES, _LONGEST = "#9aa5b1", "#2f6db3", "#e0a030", "#b8423a"
_PARTS = {
    "memories": _MEMORIES,
    "clock": "#6a4c93",
    "cells": _LOGIC,
    "nets": "#7fb3e6",
    "leakage": _THESIS,
}
#: mW of an engine of the thesis (7.2.4).
_THESIS_MW = {"bp": 27.0, "conv": 38.0}
_DPI = 130


def _png(figure: Figure) -> bytes:
    content = BytesIO()
    # Without the version of the tool in it, equal figures are equal files.
    figure.savefig(content, format="png", dpi=_DPI, metadata={"Software": None})
    return content.getvalue()


def _clean(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)


def area(report: Report) -> bytes:
    """Area of each component beside the thesis's."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    rows = list(reversed(report.beside))
    places = range(len(rows))
    high = 0.38
    logic = [row.ours - row.memories for row in rows]
    memories = [row.memories for row in rows]
    up = [place + high / 2 for place in places]
    down = [place - high / 2 for place in places]
    thesis_total = sum(row.thesis for row in rows)
    total = sum(row.ours for row in rows)
    thesis = axes.barh(
        up, [row.thesis for row in rows], high, color=_THESIS, label=f"thesis: {thesis_total:,.0f}"
    )
    axes.barh(down, memories, high, color=_MEMORIES, label=f"ours, memories: {sum(memories):,.0f}")
    ours = axes.barh(
        down, logic, high, left=memories, color=_LOGIC, label=f"ours, logic: {sum(logic):,.0f}"
    )
    axes.bar_label(thesis, [f"{row.thesis:,.0f}" for row in rows], padding=3, fontsize=8)
    axes.bar_label(ours, [f"{row.ours:,.0f}" for row in rows], padding=3, fontsize=8)
    axes.set_yticks(places, [row.component for row in rows])
    axes.set_xlabel("µm² at 28 nm")
    axes.set_title(f"Area of an engine: {total:,.0f} µm² beside Table 7.4's {thesis_total:,.0f}")
    axes.legend(loc="center right", frameon=False)
    _clean(axes)
    return _png(figure)


def clock(report: Report) -> bytes:
    """Clock of each unit alone and of the engine in standard cells."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    rows = [row for row in report.cells.rows if "fmax_mhz" in row.values]
    rows.sort(key=lambda row: -row.values["fmax_mhz"])
    names = [*(row.unit for row in rows), "whole engine"]
    clocks = [row.values["fmax_mhz"] for row in (*rows, report.cells.total)]
    colours = [_LOGIC] * len(rows) + [_LONGEST]
    bars = axes.barh(names, clocks, color=colours)
    axes.bar_label(bars, [f"{value:,.0f}" for value in clocks], padding=3, fontsize=8)
    axes.axvline(1000, color="black", linewidth=0.8, linestyle="--")
    axes.set_xlabel("MHz")
    axes.set_title("Clock by the longest path in Nangate 45 nm, before layout (dashed: goal)")
    _clean(axes)
    return _png(figure)


def power(report: Report) -> bytes:
    """Power by unit for each kernel, at the thesis's node and clock."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    both = figure.subplots(1, len(report.power), sharex=True)
    for axes, (kernel, found) in zip(both, report.power.items(), strict=True):
        _power_of(axes, kernel, found.at_thesis_node())
    both[-1].legend(loc="lower right", frameon=False)
    figure.suptitle(
        f"Power at 28 nm, 0.9 V and {THESIS_MHZ:g} MHz, scaled from Nangate 45 nm, gated clocks"
    )
    return _png(figure)


def _power_of(axes: Axes, kernel: str, report: PowerReport) -> None:
    rows = [row for row in report.rows if row.milliwatts(THESIS_MHZ) >= 0.05][::-1]
    left = [0.0] * len(rows)
    for part, colour in _PARTS.items():
        scale = 1e-6 if part == "leakage" else THESIS_MHZ * 1e-6
        values = [scale * getattr(row, part) for row in rows]
        axes.barh([row.unit for row in rows], values, left=left, color=colour, label=part)
        left = [before + value for before, value in zip(left, values, strict=True)]
    total = report.total.milliwatts(THESIS_MHZ)
    title = f"{KERNELS[kernel]}\n{total:.1f} mW (thesis {_THESIS_MW[kernel]:.0f})"
    axes.set_title(title, fontsize=11)
    axes.set_xlabel("mW")
    _clean(axes)


def scaling(report: Report) -> bytes:
    """Area over each parameter that can be chosen."""
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    for axes, sweep in zip(figure.subplots(2, 2, sharey=True).flat, report.scaling, strict=True):
        names = [f"{value:,}" for value, _, _ in sweep.points]
        memories = [um2 / 1000 for _, _, um2 in sweep.points]
        logic = [um2 / 1000 for _, um2, _ in sweep.points]
        axes.bar(names, memories, 0.6, color=_MEMORIES, label="memories")
        bars = axes.bar(names, logic, 0.6, bottom=memories, color=_LOGIC, label="logic")
        sums = [f"{(one + other) / 1000:.0f}" for _, one, other in sweep.points]
        labels = axes.bar_label(bars, sums, padding=2)
        for label, (value, _, _) in zip(labels, sweep.points, strict=True):
            label.set_fontweight("bold" if value == sweep.chosen else "normal")
        axes.set_xlabel(sweep.label)
        axes.set_ylabel("1000 µm²")
        _clean(axes)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", frameon=False)
    figure.suptitle("Area at 28 nm over one parameter at a time (bold: as chosen)")
    return _png(figure)


#: Name of each figure's file, without its ending -> what draws it.
FIGURES: Mapping[str, Callable[[Report], bytes]] = {
    "area": area,
    "clock": clock,
    "power": power,
    "scaling": scaling,
}
