"""Tables of area, placement and proofs."""

from collections.abc import Mapping, Sequence

from synth.formal.induction import Proof
from synth.physical.area import AreaReport, AreaRow
from synth.physical.place import PlaceReport
from vip.cli.console import console, table

#: Measures in the tables; the JSON report has all.
SHOWN = ("logic_ge", "luts", "ffs", "dsps", "brams", "sram_bits", "fmax_mhz")


def show_area(config_name: str, report: Mapping[str, AreaReport]) -> None:
    """Print the areas for several targets, one row per unit."""
    first = next(iter(report.values()))
    columns = [
        (target, name)
        for target, area in report.items()
        for name in SHOWN
        if name in area.total.values and (name != "sram_bits" or area.target == first.target)
    ]
    heads = [f"{name}\n{target}" for target, name in columns]
    units = table("unit", *heads, left=("unit",), title=f"Area of {config_name}")

    def cells(unit: str, rows: dict[str, AreaRow | None]) -> list[str]:
        values = []
        for target, name in columns:
            row = rows[target]
            number = None if row is None else row.values.get(name)
            values.append("" if number is None else f"{number:,.0f}")
        return [unit, *values]

    for row in first.rows:
        units.add_row(*cells(row.unit, {t: area.row(row.unit) for t, area in report.items()}))
    units.add_section()
    units.add_row(*cells("total", {t: area.total for t, area in report.items()}))
    if any(area.flat for area in report.values()):
        units.add_row(*cells("flat", {t: area.flat for t, area in report.items()}))
    console.print(units)


def show_placed(config_name: str, placed: Mapping[str, Sequence[PlaceReport]]) -> None:
    """Print what was placed, one row per unit and device."""
    heads = ("device", "unit", "MHz (median)", "least", "most", "fit", "longest path (ns)")
    rows = table(*heads, left=heads[:2], title=f"{config_name}, placed and routed")
    for device, reports in placed.items():
        for report in reports:
            clocks = [placement.fmax_mhz for placement in report.placements]
            rows.add_row(
                device,
                report.unit,
                *(f"{mhz:.1f}" for mhz in (report.fmax_mhz, min(clocks), max(clocks))),
                str(report.device.copies(report.used)),
                ", ".join(f"{unit} {ns:.1f}" for unit, ns in report.path),
            )
    console.print(rows)


def show_proofs(proofs: Mapping[str, Proof]) -> None:
    """Print ``proofs`` by the engine's application or program, with counterexamples of failed
    ones."""
    heads = ("for", "conditions", "seconds", "result")
    title = "Trimmed engines that behave as the full one does"
    results = table(*heads, left=("for", "result"), title=title)
    for name, proof in proofs.items():
        result = "proved" if proof.holds else "REFUTED"
        results.add_row(name, f"{proof.goals:,}", f"{proof.seconds:,.0f}", result)
    console.print(results)
    for name, proof in proofs.items():
        for goals, inputs in proof.failures:
            console.print(f"{name}: {', '.join(goals)} fails", markup=False)
            if inputs:
                console.print(f"  with {', '.join(inputs)}", markup=False)
