"""Tables of area and of placement."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from synth.physical.area import AreaReport, AreaRow
from synth.physical.place import PlaceReport
from vip.cli.console import console

__all__ = ["SHOWN", "show_area", "show_placed"]

#: Measures that a table shows; the JSON report has all.
SHOWN = ("logic_ge", "luts", "ffs", "dsps", "brams", "sram_bits", "fmax_mhz")


def show_area(config_name: str, report: Mapping[str, AreaReport]) -> None:
    """Print the areas for several targets, a row a unit."""
    first = next(iter(report.values()))
    columns = [
        (target, name)
        for target, area in report.items()
        for name in SHOWN
        if name in area.total.values and (name != "sram_bits" or area.target == first.target)
    ]
    table = Table(title=f"Area of {config_name}")
    table.add_column("unit")
    for target, name in columns:
        table.add_column(f"{name}\n{target}", justify="right")

    def cells(unit: str, rows: dict[str, AreaRow | None]) -> list[str]:
        values = []
        for target, name in columns:
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
    console.print(table)


def show_placed(config_name: str, placed: Mapping[str, Sequence[PlaceReport]]) -> None:
    """Print what was placed, a row a unit and device."""
    table = Table(title=f"{config_name}, placed and routed")
    for name in ("device", "unit", "MHz (median)", "least", "most", "fit", "longest path (ns)"):
        table.add_column(name, justify="left" if name in ("device", "unit") else "right")
    for device, reports in placed.items():
        for report in reports:
            clocks = [placement.fmax_mhz for placement in report.placements]
            table.add_row(
                device,
                report.unit,
                *(f"{mhz:.1f}" for mhz in (report.fmax_mhz, min(clocks), max(clocks))),
                str(report.device.copies(report.used)),
                ", ".join(f"{unit} {ns:.1f}" for unit, ns in report.path),
            )
    console.print(table)
