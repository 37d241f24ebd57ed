"""``vip synth``: area by unit; place and route."""

from typing import Annotated

import typer
from rich.table import Table

from soc.generate.generate import configuration_json
from soc.generate.presets import preset
from synth.physical.area import MEASURES, TOTAL, AreaReport, AreaRow, synthesise
from synth.physical.asic import LIBERTY_PREFIX, NANGATE45, NANGATE45_AREA
from synth.physical.devices import DEVICES, GRADES, is_device
from synth.physical.place import PlaceReport, place
from synth.physical.targets import DEFAULT_TARGETS, TARGETS
from synth.physical.thesis_area import beside_thesis
from synth.physical.units import check_units
from vip.cli.console import console, units_done
from vip.cli.errors import UserError
from vip.output import write_json

from .options import JsonOption, PresetOption, liberty_files, reading

__all__ = ["area_json", "measure", "show_area", "synth"]

#: Measures that a table shows; the JSON report has all.
_SHOWN = ("logic_ge", "luts", "ffs", "dsps", "brams", "sram_bits", "fmax_mhz")

#: Measures that the JSON report always has a place for.
_ALWAYS = ("logic_ge", "area_um2", "luts", "ffs", "dsps", "brams", "fmax_mhz")


def _is_cells(name: str) -> bool:
    """Whether ``name`` is a target of standard cells."""
    return name in (NANGATE45, NANGATE45_AREA) or name.startswith(LIBERTY_PREFIX)


def measure(config_name: str, report: dict[str, AreaReport]) -> Table:
    """A table of the reports of several targets, a row a unit."""
    first = next(iter(report.values()))
    shown = [
        (target, name)
        for target, area in report.items()
        for name in _SHOWN
        if name in area.total.values and (name != "sram_bits" or area.target == first.target)
    ]
    table = Table(title=f"Area of {config_name}")
    table.add_column("unit")
    for target, name in shown:
        table.add_column(f"{name}\n{target}", justify="right")

    def cells(unit: str, rows: dict[str, AreaRow | None]) -> list[str]:
        values = []
        for target, name in shown:
            row = rows[target]
            number = None if row is None else row.values.get(name)
            values.append("" if number is None else f"{number:,.0f}")
        return [unit, *values]

    for row in first.rows:
        table.add_row(*cells(row.unit, {t: area.row(row.unit) for t, area in report.items()}))
    table.add_section()
    table.add_row(*cells("total", {t: area.total for t, area in report.items()}))
    if any(area.flat for area in report.values()):
        table.add_row(*cells("flat", {t: area.flat for t, area in report.items()}))
    return table


def area_json(
    report: dict[str, AreaReport], placed: dict[str, list[PlaceReport]] | None = None
) -> dict[str, object]:
    """Totals, ``units`` by name, each target and device, and ``generic`` beside Table 7.4.

    Every measure of :data:`_ALWAYS` is there; None where nothing gives it. Of equal measures the
    last target's counts, of targets that give a clock before all others, so that ``logic_ge`` and
    ``fmax_mhz`` are of one netlist; and what was placed counts before all.
    """
    none: dict[str, object] = dict.fromkeys(_ALWAYS)
    totals = dict(none)
    units: dict[str, dict[str, object]] = {}
    for area in sorted(report.values(), key=lambda area: "fmax_mhz" in area.total.values):
        totals |= area.total.values
        for row in area.rows:
            units[row.unit] = {**units.get(row.unit, none), **row.values}
    found: dict[str, object] = {"targets": {name: area.to_json() for name, area in report.items()}}
    if "generic" in report:
        found["table_7_4_um2"] = {
            row.component: {"thesis": row.thesis, "ours": round(row.ours, 1)}
            for row in beside_thesis(report["generic"])
        }
    if placed:
        found["devices"] = {
            device: {one.unit: one.to_json() for one in reports}
            for device, reports in placed.items()
        }
        for one in (one for reports in placed.values() for one in reports):
            values = {**one.used, "fmax_mhz": one.fmax_mhz}
            if one.unit == TOTAL:
                totals |= values
            else:
                units[one.unit] = {**units.get(one.unit, none), **values}
    return {**totals, "units": units, **found}


def placed_table(config_name: str, placed: dict[str, list[PlaceReport]]) -> Table:
    """A table of what was placed, a row a unit and device."""
    table = Table(title=f"{config_name}, placed and routed")
    for name in ("device", "unit", "MHz (median)", "least", "most", "fit", "longest path (ns)"):
        table.add_column(name, justify="left" if name in ("device", "unit") else "right")
    for device, found in placed.items():
        for report in found:
            clocks = [placement.fmax_mhz for placement in report.placements]
            table.add_row(
                device,
                report.unit,
                *(f"{mhz:.1f}" for mhz in (report.fmax_mhz, min(clocks), max(clocks))),
                str(report.device.copies(report.used)),
                ", ".join(f"{unit} {ns:.1f}" for unit, ns in report.path),
            )
    return table


def show_area(name: str, report: dict[str, AreaReport]) -> None:
    """Print the table."""
    console.print(measure(name, report))


def synth(
    unit: Annotated[
        list[str] | None, typer.Argument(help="Units (default: all).", metavar="[UNIT]...")
    ] = None,
    preset_name: PresetOption = "pe",
    target: Annotated[
        list[str] | None,
        typer.Option(
            help=f"One of {', '.join(TARGETS)}, nangate45 (for speed), nangate45-area, liberty:PATH"
            f", or to place and route {', '.join(DEVICES)}, with speed grade -{', -'.join(GRADES)}"
            f" behind it or the slowest;"
            f" may be repeated (default: {' and '.join(DEFAULT_TARGETS)}).",
            callback=reading(liberty_files),
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Placements on each device.")] = 5,
    flat: Annotated[
        bool, typer.Option("--flat", help="Also the whole engine, without borders between units.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Tools at a time (default: one a processor).")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Synthesise with Yosys and report the area of each unit; or place and route on an FPGA.

    Finished units and seeds are kept, so an interrupted run goes on where it stopped. On a device,
    the whole engine is placed, or each unit named, alone.

    Example: vip synth --target generic --json area.json
    """
    config = preset(preset_name)
    for name in target or ():
        if not is_device(name) and name not in TARGETS and not _is_cells(name):
            cells = (NANGATE45, NANGATE45_AREA, f"{LIBERTY_PREFIX}PATH")
            known = ", ".join((*TARGETS, *cells, *DEVICES))
            raise UserError(f"unknown target or device {name!r}; there are: {known}")
    check_units(unit or ())
    report: dict[str, AreaReport] = {}
    placed: dict[str, list[PlaceReport]] = {}
    for name in target or DEFAULT_TARGETS:
        if is_device(name):
            wanted: list[str | None] = [*unit] if unit else [None]
            for one in wanted:
                with units_done(f"place and route on {name}") as progress:
                    found = place(config, name, unit=one, seeds=seeds, progress=progress, jobs=jobs)
                placed.setdefault(name, []).append(found)
        else:
            with units_done(f"synthesis for {name}") as progress:
                report[name] = synthesise(config, name, unit, progress, jobs, flat=flat)
    results = area_json(report, placed)
    write_json(json, {**results, "configuration": configuration_json(config)})
    if placed:
        console.print(placed_table(preset_name, placed))
    if not report:
        return
    show_area(preset_name, report)
    for name in _SHOWN:
        if any(name in area.total.values for area in report.values()):
            console.print(f"{name}: {MEASURES[name]}", style="dim")
