"""``python -m bench``: measure, and compare with what was recorded."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from isa.files import write_atomically
from vip.console import console, steps
from vip.errors import run_command
from vip.output import provenance

from .measure import BENCHMARKS, Measurement, measure

RESULTS = Path(__file__).parent / "results"


def _verdict(new: Measurement, old: float | None) -> str:
    if old is None:
        return "new"
    if new.tolerance is None:
        return ""
    if abs(new.value - old) <= new.tolerance * abs(old):
        return "as recorded"
    return "better: record it" if (new.value > old) == new.more_is_better else "WORSE"


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Of {', '.join(BENCHMARKS)} (default: all).")
    ] = None,
    record: Annotated[bool, typer.Option(help="Keep the results as the new record.")] = False,
) -> None:
    """Measure and compare with bench/results; the exit code is 1 if anything got worse.

    Example: python -m bench bp --record
    """
    for name in names or BENCHMARKS:
        if name not in BENCHMARKS:
            raise typer.BadParameter(f"{name}: there are {', '.join(BENCHMARKS)}")
    worse = False
    for name in names or BENCHMARKS:
        path = RESULTS / f"{name}.json"
        old = json.loads(path.read_text())["results"] if path.is_file() else {}
        with steps("bench") as step:
            step(name)
            results = measure(name)
        table = Table("figure", "value", "recorded", "unit", "", title=name)
        for item in results:
            before = old.get(item.name, {}).get("value")
            verdict = _verdict(item, before)
            worse |= verdict == "WORSE"
            shown = "" if before is None else f"{before:,.2f}"
            table.add_row(item.name, f"{item.value:,.2f}", shown, item.unit, verdict)
        console.print(table)
        if record:
            kept = {item.name: {"value": item.value, "unit": item.unit} for item in results}
            RESULTS.mkdir(exist_ok=True)
            report = {"results": kept, "provenance": provenance()}
            write_atomically(path, json.dumps(report, indent=2).encode() + b"\n")
    if worse:
        raise typer.Exit(1)


if __name__ == "__main__":
    run_command(lambda: typer.run(main))
