"""``python -m bench``: measure, and compare with what was recorded."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from .benchmarks import BENCHMARKS, Benchmark
from .checkout import clean_commit
from .measurement import BenchError, Measurement, cpu_seconds
from .record import Record, read_record, tool_versions, write_record
from .terminal import console, run, say


def _verdict(new: Measurement, old: float | None) -> str:
    if old is None:
        return "new"
    if new.tolerance is None:
        return ""
    if abs(new.value - old) <= new.tolerance * abs(old):
        return "as recorded"
    return "better: record it" if (new.value > old) == new.more_is_better else "WORSE"


def _show(name: str, results: Sequence[Measurement], known: Record) -> bool:
    """Show results beside the record; whether anything got worse."""
    table = Table("figure", "value", "recorded", "unit", "", title=name)
    worse = False
    for item in results:
        before = known.results.get(item.name, {}).get("value")
        verdict = _verdict(item, before)
        worse |= verdict == "WORSE"
        shown = "" if before is None else f"{before:,.2f}"
        table.add_row(item.name, f"{item.value:,.2f}", shown, item.unit, verdict)
    console.print(table)
    return worse


def _say_stale(name: str, benchmark: Benchmark) -> None:
    for why in benchmark.stale(read_record(name)):
        console.print(f"stale: {name}: {why}", style="yellow", soft_wrap=True)


def _run(name: str, benchmark: Benchmark, *, record: bool) -> bool:
    """Measure, show, and record if that is asked for; whether anything got worse."""
    commit = clean_commit() if record else ""
    known = read_record(name)
    before = cpu_seconds()
    say(name)
    results = list(benchmark.run())
    spent = cpu_seconds() - before
    worse = _show(name, results, known)
    if record:
        if clean_commit() != commit:
            raise BenchError(f"{name}: not recorded: the checkout changed meanwhile")
        write_record(
            name,
            results,
            commit=commit,
            measured=benchmark.measured(),
            tools=tool_versions(benchmark.tools),
            configurations=benchmark.configurations(),
            cpu_seconds=spent,
        )
    return worse


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Of {', '.join(BENCHMARKS)} (default: all).")
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Keep the results as the new record.")
    ] = False,
    stale: Annotated[
        bool, typer.Option("--stale", help="Measure nothing: name the records that are stale.")
    ] = False,
) -> None:
    """Measure and compare with bench/results; the exit code is 1 if anything got worse.

    Records of which something that they measured has changed are named first. --record needs a
    clean checkout of git.

    Example: python -m bench bp --record
    """
    for name in names or ():
        if name not in BENCHMARKS:
            raise BenchError(f"{name}: there are {', '.join(BENCHMARKS)}")
    chosen = {name: BENCHMARKS[name] for name in names or BENCHMARKS}
    if record:
        clean_commit()
    else:
        for name, benchmark in chosen.items():
            _say_stale(name, benchmark)
    if stale:
        return
    worse = [name for name, benchmark in chosen.items() if _run(name, benchmark, record=record)]
    if worse:
        raise typer.Exit(1)


if __name__ == "__main__":
    run(main)
