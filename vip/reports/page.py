"""The verb ``report``: a page on an engine, one HTML file with everything in it."""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microkernels.data.pictures import need_photographs
from pe.config import PeConfig
from sim_tb.runner.build import check_tools, need_simulator
from soc.generate.presets import Design, engine
from support.errors import Shown
from support.extras import need, together
from support.files import write_atomically
from support.picture import COLOURS, MUTED, SUFFIXES, picture
from synth.physical.area import MEASURES, TABLE_7_4, AreaReport, by_component, synthesise
from synth.physical.asic import NANGATE45, need_nangate
from synth.physical.devices import DEVICES, PLACED, find_device, find_placed
from synth.physical.nextpnr import need_nextpnr
from synth.physical.place import PlaceReport
from synth.power.power import THESIS_MHZ, PowerReport
from vip.output import provenance
from vip.progress import Progress, naming, silent
from vip.synthesis.area import place
from vip.synthesis.clocks import TimedNetlist, timing
from vip.synthesis.power import KERNELS, engine_power, record

from .run.charts import Bar, bars, figure, legend, table
from .run.page import html_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Parameter of a configuration -> its description, and the values that are tried.
_SWEEPS: Mapping[str, tuple[str, Sequence[int]]] = {
    "arc_entries": ("ARC entries", (5, 10, 20, 40)),
    "scratchpad_bytes": ("scratchpad, bytes", (2048, 4096, 8192, 16384)),
    "registers": ("registers", (16, 32, 64)),
    "load_store_queue": ("load-store queue", (8, 16, 32, 64)),
}


#: Points of an area over a parameter: value, um2 of logic and of memories at 28 nm.
Points = tuple[tuple[int, float, float], ...]


@dataclass(frozen=True, kw_only=True)
class Report(Shown):
    """A page and all its contents.

    Attributes:
        page: the HTML file. name, config: of the engine.
        area: for ``generic``. cells: for ``nangate45``.
        netlist: of standard cells.
        fits: device -> engines that fit, by the counts for ``ecp5``.
        power: kernel of :data:`KERNELS` -> power.
        scaling: by parameter, its present value and the points. placed: on devices, if requested.
    """

    page: Path
    name: str
    config: PeConfig
    area: AreaReport
    cells: AreaReport
    netlist: TimedNetlist
    fits: Mapping[str, int]
    power: Mapping[str, PowerReport]
    scaling: Mapping[str, tuple[int, Points]]
    placed: tuple[PlaceReport, ...]


def collect(
    page: Path,
    name: str,
    config: PeConfig,
    *,
    devices: Sequence[str],
    seeds: int,
    jobs: int | None,
    step: Callable[[str], None],
) -> Report:
    """Measure everything; finished syntheses are cached, so a second time is quick.

    Parameters:
        page: where the caller writes it. name: of the configuration.
        devices: FPGAs to place on, which takes minutes per seed.
        seeds: placements on each. jobs: tools in parallel. step: called with the name of the next
            step.

    Raises:
        SynthesisError: a device that does not exist or is too small, or a tool is missing.
    """
    step("area")
    area = synthesise(config, "generic", jobs=jobs)
    step("standard cells")
    cells = synthesise(config, "nangate45", jobs=jobs)
    netlist = timing(config, jobs=jobs)
    step("ECP5")
    ecp5 = synthesise(config, "ecp5", jobs=jobs).total.values
    power = {}
    for kernel in KERNELS:
        step(f"power of {kernel}")
        run = record(kernel, config)
        power[kernel] = engine_power([run], config, "nangate45", jobs=jobs)
    scaling = dict(_scaling(config, jobs, step))
    placed = []
    for device in devices:
        step(f"placement on {device}")
        placed.append(place(config, device, seeds=seeds, jobs=jobs))
    return Report(
        page=page,
        name=name,
        config=config,
        area=area,
        cells=cells,
        netlist=netlist,
        fits={name: DEVICES[name].copies(ecp5) for name in PLACED},
        power=power,
        scaling=scaling,
        placed=tuple(placed),
    )


def _scaling(
    config: PeConfig, jobs: int | None, step: Callable[[str], None]
) -> Iterator[tuple[str, tuple[int, Points]]]:
    for parameter, (label, values) in _SWEEPS.items():
        chosen = getattr(config, parameter)
        points = []
        for value in sorted({*values, chosen}):
            step(f"{label}: {value}")
            changed: dict[str, Any] = {parameter: value}
            total = synthesise(replace(config, **changed), "generic", jobs=jobs).total.values
            memories = total["sram_um2"]
            points.append((value, total["area_um2"] - memories, memories))
        yield label, (chosen, tuple(points))


_LOGIC, _MEMORIES = COLOURS[:2]
_PARTS = {
    "memories": _MEMORIES,
    "clock": COLOURS[4],
    "cells": _LOGIC,
    "nets": COLOURS[5],
    "leakage": MUTED,
}
#: mW of an engine of the thesis (7.2.4).
_THESIS_MW = {"bp": 27.0, "conv": 38.0}
#: Room for the labels at the ends of bars, as a fraction of the axis.
_ROOM = 0.1


def area(report: Report, path: Path) -> None:
    """Area of each component beside the thesis's."""
    rows = list(reversed(by_component(report.area)))
    places = range(len(rows))
    high = 0.38
    logic = [row.values["area_um2"] - row.values["sram_um2"] for row in rows]
    memories = [row.values["sram_um2"] for row in rows]
    thesis = [TABLE_7_4[row.unit] for row in rows]
    up = [place + high / 2 for place in places]
    down = [place - high / 2 for place in places]
    ours = [row.values["area_um2"] for row in rows]
    total = sum(ours)
    with picture(8, 5, path) as figure:
        axes = figure.add_subplot()
        bars = axes.barh(up, thesis, high, color=MUTED, label=f"thesis: {sum(thesis):,.0f}")
        axes.bar_label(bars, [f"{value:,.0f}" for value in thesis], padding=3, fontsize=8)
        label = f"ours, memories: {sum(memories):,.0f}"
        axes.barh(down, memories, high, color=_MEMORIES, label=label)
        label = f"ours, logic: {sum(logic):,.0f}"
        bars = axes.barh(down, logic, high, left=memories, color=_LOGIC, label=label)
        axes.bar_label(bars, [f"{value:,.0f}" for value in ours], padding=3, fontsize=8)
        axes.margins(x=_ROOM)
        axes.set_yticks(places, [row.unit for row in rows])
        axes.set_xlabel("µm² at 28 nm")
        axes.set_title(f"Area of an engine: {total:,.0f} µm² beside Table 7.4's {sum(thesis):,.0f}")
        axes.legend(loc="best")


def power(report: Report, path: Path) -> None:
    """Power by unit for each kernel, at the thesis's node and clock."""
    with picture(9, 5, path) as figure:
        both = figure.subplots(1, len(report.power), sharex=True)
        for axes, (kernel, report_of) in zip(both, report.power.items(), strict=True):
            _power_of(axes, kernel, report_of.at_thesis_node())
        figure.legend(
            *both[-1].get_legend_handles_labels(), loc="outside lower center", ncols=len(_PARTS)
        )
        figure.suptitle(
            f"Power at 28 nm, 0.9 V and {THESIS_MHZ:g} MHz, scaled from Nangate 45 nm, gated clocks"
        )


def _power_of(axes: "Axes", kernel: str, report: PowerReport) -> None:
    rows = [row for row in report.rows if row.milliwatts(THESIS_MHZ) >= 0.05][::-1]
    left = [0.0] * len(rows)
    for part, colour in _PARTS.items():
        scale = 1e-6 if part == "leakage" else THESIS_MHZ * 1e-6
        values = [scale * getattr(row, part) for row in rows]
        axes.barh([row.unit for row in rows], values, left=left, color=colour, label=part)
        left = [before + value for before, value in zip(left, values, strict=True)]
    total = report.total.milliwatts(THESIS_MHZ)
    axes.set_title(f"{KERNELS[kernel]}\n{total:.1f} mW (thesis {_THESIS_MW[kernel]:.0f})")
    axes.set_xlabel("mW")


#: Name of each figure's file, without its ending -> function that draws it, as PNG or SVG.
FIGURES: Mapping[str, Callable[[Report, Path], None]] = {
    "area": area,
    "power": power,
}


def _path(steps: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{unit} {ns:.2f} ns" for unit, ns in steps)


def _area(report: Report) -> str:
    rows = by_component(report.area)
    total = sum(row.values["area_um2"] for row in rows)
    return table(
        ("component", "Table 7.4, µm²", "ours, µm²", "of it memories", "share"),
        (
            (
                row.unit,
                f"{TABLE_7_4[row.unit]:,.0f}",
                f"{row.values['area_um2']:,.0f}",
                f"{row.values['sram_um2']:,.0f}",
                f"{row.values['area_um2'] / total:.1%}",
            )
            for row in rows
        ),
    )


def _netlists(report: Report) -> str:
    area = report.area.total.values["logic_ge"]
    corner = report.netlist.corners[0]
    clocks = (f"{path.fmax_mhz:,.0f}" for path in (corner.pins, corner.wires))
    rows = [
        ("generic", f"{area / 1000:.1f}", "none", "none"),
        (report.netlist.target, f"{report.netlist.logic_ge / 1000:.1f}", *clocks),
    ]
    return table(("netlist", "kGE", "MHz, pins alone", "MHz, the library's wires"), rows)


def _clock(report: Report) -> str:
    rows = [*(row for row in report.cells.rows if row.path), report.cells.total]
    return table(
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
    return table(head, rows)


def _devices(report: Report) -> str:
    placed = {placement.device.name: placement for placement in report.placed}
    rows = []
    for name in dict.fromkeys((*report.fits, *placed)):
        placement = placed.get(name)
        number = report.fits[name] if placement is None else placement.device.copies(placement.used)
        clock = "not placed" if placement is None else f"{placement.fmax_mhz:.1f}"
        path = "" if placement is None else _path(placement.path)
        rows.append((find_device(name).part, str(number), clock, path))
    return table(("device", "engines that fit", "MHz, median of seeds", "longest path"), rows)


def _area_bars(report: Report) -> str:
    """Area over each parameter that can be chosen."""
    colours = {"memories": _MEMORIES, "logic": _LOGIC}
    every = [sum(point[1:]) for _, points in report.scaling.values() for point in points]
    body = legend(colours)
    for label, (present, points) in report.scaling.items():
        rows = []
        for value, logic, memories in points:
            title = f"{value:,}, as chosen" if value == present else f"{value:,}"
            parts = {
                name: (um2, f"{um2:,.0f} µm²")
                for name, um2 in (("memories", memories), ("logic", logic))
            }
            rows.append(Bar(f"{label} {title}", parts, title))
        body += f"<h3>{escape(label)}</h3>" + bars(rows, colours, max(every))
    return body


def page(report: Report, figures: Mapping[str, bytes]) -> str:
    """The page's HTML.

    Parameters:
        figures: name -> PNG, of those of :data:`vip.reports.page.FIGURES`.
    """
    drawn = {
        name: f'<img alt="{name}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
        for name, png in figures.items()
    }
    apart = (
        "Each row is a netlist of its own: none has both the least area and the highest clock. "
        "The area above is of generic, the paths below are of nangate45."
    )
    sections = (
        figure("Area", drawn["area"] + _area(report), f"{MEASURES['area_um2']}."),
        figure("Clock in standard cells", _netlists(report) + _clock(report), apart),
        figure("Power", drawn["power"] + _power(report)),
        figure(
            "Area over parameters",
            _area_bars(report),
            "One parameter at a time, at 28 nm. The datapath's 64 bits are not a parameter.",
        ),
        figure("On FPGAs", _devices(report)),
    )
    return html_page(f"Engine {report.name}", provenance(), sections)


_PAGE = "index.html"
#: Names of the files of a report.
FILES = (_PAGE, *(f"{name}{suffix}" for name in FIGURES for suffix in SUFFIXES))


def report(
    config: Design,
    folder: Path | str,
    *,
    devices: Sequence[str] = (),
    seeds: int = 5,
    jobs: int | None = None,
    progress: Progress = silent,
) -> Report:
    """Write a page on an engine: area beside the thesis's, clock, power, scaling, devices.

    ``report("pe", "build/report").page`` needs no other file; area and power are beside it as PNG
    and SVG. The first call takes about ten minutes; finished units are cached.

    Parameters:
        config: of an engine.
        folder: created if missing.
        devices: FPGAs to place on (:func:`synth.physical.devices.find_placed`), which takes minutes
            per seed.
        seeds: placements on each, at least 1.
        jobs: tools in parallel; None: one per processor.
        progress: called with each step.

    Raises:
        VipError: an unknown preset or device, an engine that does not fit, or a missing tool or
            extra.
        OSError: a file can't be written.
    """
    with together():
        need("matplotlib", "pictures")
        need_photographs()
        need_simulator()
        need_nangate(NANGATE45)
        for name in devices:
            find_placed(name)
            need_nextpnr()
    check_tools()
    target = Path(folder)
    collected = collect(
        target / _PAGE,
        config if isinstance(config, str) else "engine",
        engine(config),
        devices=devices,
        seeds=seeds,
        jobs=jobs,
        step=naming(progress, "report"),
    )
    target.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        for suffix in SUFFIXES:
            draw(collected, target / f"{name}{suffix}")
    figures = {name: (target / f"{name}.png").read_bytes() for name in FIGURES}
    write_atomically(collected.page, page(collected, figures).encode())
    return collected
