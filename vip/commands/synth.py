"""``vip synth``: area by unit."""

from typing import Annotated

import typer
from rich.table import Table

from soc.generate import configuration_json
from soc.presets import preset
from synth.area import MEASURES, AreaReport, AreaRow, synthesise
from synth.targets import DEFAULT_TARGETS, TARGETS

from ..console import console, units_done
from ..output import check_outputs, write_json
from .options import JsonOption, PresetOption

__all__ = ["area_json", "measure", "show_area", "synth"]

#: Measures that a table shows; the JSON report has all.
_SHOWN = ("logic_ge", "luts", "ffs", "dsps", "brams", "sram_bits")


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
            values.append("" if row is None else f"{row.values[name]:,.0f}")
        return [unit, *values]

    for row in first.rows:
        table.add_row(*cells(row.unit, {t: area.row(row.unit) for t, area in report.items()}))
    table.add_section()
    table.add_row(*cells("total", {t: area.total for t, area in report.items()}))
    return table


def area_json(report: dict[str, AreaReport]) -> dict[str, object]:
    """Totals, ``units`` by name, and each target; of equal measures the last target's counts."""
    totals: dict[str, object] = {}
    units: dict[str, dict[str, object]] = {}
    for area in report.values():
        totals = {**totals, **area.total.values}
        for row in area.rows:
            units[row.unit] = {**units.get(row.unit, {}), **row.values}
    return {
        **totals,
        "units": units,
        "targets": {target: area.to_json() for target, area in report.items()},
    }


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
            help=f"One of {', '.join(TARGETS)}; may be repeated"
            f" (default: {' and '.join(DEFAULT_TARGETS)})."
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Synthesise with Yosys and report the area of each unit.

    Finished units are kept, so an interrupted run goes on where it stopped.

    Example: vip synth --target generic --json area.json
    """
    check_outputs(json)
    config = preset(preset_name)
    report = {}
    for name in target or DEFAULT_TARGETS:
        with units_done(f"synthesis for {name}") as progress:
            report[name] = synthesise(config, name, unit, progress)
    write_json(json, {**area_json(report), "configuration": configuration_json(config)})
    show_area(preset_name, report)
    for name in _SHOWN:
        if any(name in area.total.values for area in report.values()):
            console.print(f"{name}: {MEASURES[name]}", style="dim")
