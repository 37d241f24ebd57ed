"""Mutation score of the hardware: ``python -m tests.mutation [UNIT ...]``.

Draws mutants of each unit's Verilog, runs the tests of ``make test`` that simulate it on each, and
prints the share that they kill. Can be interrupted; the next run goes on from there.
"""

import json
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated

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

from hdl.yosys import yosys_version
from support.command import run_command
from support.files import write_atomically

from .campaign import try_mutants
from .netlist import MutantError
from .units import UNITS

FOLDER = Path(__file__).parent
SCORE, EQUIVALENT = FOLDER / "score.json", FOLDER / "equivalent.json"
SEED = 46


def _main(
    units: Annotated[list[str] | None, typer.Argument(help="default: all")] = None,
    seed: Annotated[int, typer.Option(min=0, help="of the draw")] = SEED,
    count: Annotated[int, typer.Option(min=0, help="mutants of a unit; 0: its own number")] = 0,
    index: Annotated[int, typer.Option(min=0, help="try this mutant of one unit only")] = 0,
    record: Annotated[bool, typer.Option(help="write score.json")] = False,
) -> None:
    """Count mutants that the tests kill."""
    names = units or list(UNITS)
    for name in names:
        if name not in UNITS:
            raise MutantError(f"no unit {name!r}; there are {', '.join(UNITS)}")
    if index and len(names) != 1:
        raise MutantError("an index needs the name of one unit")
    if record and (units or count or index or seed != SEED):
        raise MutantError("only all mutants of all units are recorded")
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    reasons: dict[str, dict[str, str]] = json.loads(EQUIVALENT.read_text())
    scores = {}
    for name in names:
        fates = Counter[str]()
        alive = []
        started = time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=console) as bar:
            task = bar.add_task(name, total=None)
            for mutant, outcome in try_mutants(
                name,
                seed=seed,
                count=count,
                index=index,
                progress=partial(_show, bar, task),
            ):
                fate = outcome.fate
                if fate == "survived" and mutant.name in reasons.get(name, {}):
                    fate = "equivalent"
                elif fate == "survived":
                    alive.append(mutant.name)
                    console.print(f"{name} {mutant.index} survives: {mutant.name}")
                fates[fate] += 1
                if index:
                    console.print(f"{mutant.name}: {fate} {outcome.test} {outcome.reason}")
        dead = fates["killed"] + fates["hung"]
        different = dead + fates["survived"]
        scores[name] = {
            "room": UNITS[name].room,
            "mutants": sum(fates.values()),
            **{fate: fates[fate] for fate in ("killed", "hung", "equivalent")},
            "survivors": alive,
            "score": round(dead / max(different, 1), 4),
        }
        console.print(
            f"{name}: {dead} of {different} killed ({dead / max(different, 1):.1%}), "
            f"{fates['equivalent']} equivalent; {time.monotonic() - started:.0f} s"
        )
    if record:
        content = {"seed": seed, "yosys": yosys_version(), "units": scores}
        write_atomically(SCORE, json.dumps(content, indent=1).encode() + b"\n")


def _show(bar: Progress, task: TaskID, done: int, total: int) -> None:
    bar.update(task, completed=done, total=total)


if __name__ == "__main__":
    run_command(lambda: typer.run(_main))
