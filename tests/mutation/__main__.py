"""Mutation score of the hardware: ``python -m tests.mutation [UNIT ...]``.

Draws mutants of each unit's Verilog, runs the tests of ``make test`` that simulate it on each, and
prints the share that they kill. The unit ``sources`` is all components in Python, whose mutants run
the tests of their room as well. Can be interrupted; the next run goes on from there.
"""

import json
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from support.command import run_command
from support.files import write_atomically

from .campaign import ROOT, try_mutants
from .netlist import MutantError
from .source_trials import try_sources
from .trial import Outcome
from .units import UNITS

#: Unit -> name of a mutant -> why nothing can tell it from the design.
EQUIVALENT = Path(__file__).with_name("equivalent.json")
SEED = 46
#: Name of the mutants of Python instead of Verilog, how many there are, and the seed of their draw:
#: two digits of a commit's hash.
SOURCES, SOURCE_COUNT, SOURCE_SEED = "sources", 110, 77


def _main(
    units: Annotated[list[str] | None, typer.Argument(help="default: all")] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help=f"of the draw; {SEED}, of sources {SOURCE_SEED}"),
    ] = None,
    count: Annotated[int, typer.Option(min=0, help="mutants of a unit; 0: its own number")] = 0,
    index: Annotated[int, typer.Option(min=0, help="try this mutant of one unit only")] = 0,
    output: Annotated[Path | None, typer.Option("--json", help="file for the counts")] = None,
) -> None:
    """Count mutants that the tests kill."""
    names = units or list(UNITS)
    for name in names:
        if name not in UNITS and name != SOURCES:
            raise MutantError(f"no unit {name!r}; there are {', '.join(UNITS)}")
    if index and len(names) != 1:
        raise MutantError("an index needs the name of one unit")
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    reasons: dict[str, dict[str, str]] = json.loads(EQUIVALENT.read_text())
    counts = {}
    for name in names:
        fates = Counter[str]()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=console) as bar:
            progress = partial(_show, bar, bar.add_task(name, total=None))
            outcomes: Mapping[Any, Outcome]
            if name == SOURCES:
                number, drawn = count or SOURCE_COUNT, SOURCE_SEED if seed is None else seed
                outcomes = try_sources(ROOT, count=number, seed=drawn, progress=progress)
            else:
                drawn = SEED if seed is None else seed
                outcomes = try_mutants(
                    name, seed=drawn, count=count, index=index, progress=progress
                )
        for mutant, outcome in outcomes.items():
            fate = outcome.fate
            if fate == "survived" and mutant.name in reasons.get(name, {}):
                fate = "equivalent"
            fates[fate] += 1
            if fate == "survived" or index:
                console.print(f"{name}, {fate}: {mutant.name} {outcome.reason}")
        dead = fates["killed"] + fates["hung"]
        different = dead + fates["survived"]
        console.print(
            f"{name}: {dead} of {different} killed "
            f"({dead / max(different, 1):.1%}), {fates['equivalent']} equivalent"
        )
        counts[name] = {"mutants": len(outcomes), "killed": dead, "different": different}
    if output is not None:
        write_atomically(output, json.dumps(counts).encode())


def _show(bar: Progress, task: TaskID, done: int, total: int) -> None:
    bar.update(task, completed=done, total=total)


if __name__ == "__main__":
    run_command(lambda: typer.run(_main))
