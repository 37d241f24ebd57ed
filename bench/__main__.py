"""``python -m bench``: measure, and compare with what was recorded."""

from typing import Annotated

import typer
from rich.table import Table

from vip.console import console, steps
from vip.errors import run_command

from .measure import BENCHMARKS, Measurement, measure
from .record import RESULTS, made_with, read_record, write_record


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
        known = read_record(path)
        old = known.results
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
        for change in known.changes(made_with()):
            console.print(f"{name} was recorded with {change}", style="yellow")
        if record:
            write_record(path, results, known)
    if worse:
        raise typer.Exit(1)


if __name__ == "__main__":
    run_command(lambda: typer.run(main))
