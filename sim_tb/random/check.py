"""The command that compares engine and instruction set simulator on random programs.

``python -m sim_tb.random.check --programs 2000 --seed 1 --json report.json``; ``--engine 4`` uses a
small engine (:mod:`sim_tb.random.programs`), and ``--disturbed 0.5`` gives half of the programs
memory errors, a stop, or both (:mod:`sim_tb.random.interrupted`).
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pe.config import PeConfig
from support.command import run_command
from support.files import write_atomically

from .comparison import check_programs
from .programs import random_config


def _main(
    programs: Annotated[int, typer.Option(min=1, help="how many")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="seed of the first program")] = 1,
    engine: Annotated[
        int | None, typer.Option(min=0, help="number of a random small engine; default: full one")
    ] = None,
    disturbed: Annotated[
        float, typer.Option(min=0, max=1, help="fraction with memory errors, a stop, or both")
    ] = 0.0,
    report: Annotated[Path | None, typer.Option("--json", help="file for the report")] = None,
    folder: Annotated[Path, typer.Option(help="where files about differing programs go")] = Path(),
) -> None:
    """Compare engine and instruction set simulator on random programs."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task("random programs", total=programs)
        outcome = check_programs(
            PeConfig() if engine is None else random_config(engine),
            programs=programs,
            seed=seed,
            folder=folder,
            disturbed=disturbed,
            progress=lambda count: bar.update(task, completed=count),
        )
    if report is not None:
        write_atomically(report, json.dumps(asdict(outcome), indent=1).encode())
    console.print(
        f"{outcome.programs} programs ({outcome.faulting} fault, {outcome.disturbed} disturbed, "
        f"{outcome.early} of them ended early, {outcome.full} fill the buffer), "
        f"{outcome.cycles} cycles in {outcome.seconds:.1f} s; {len(outcome.different)} differ"
    )
    for difference in outcome.different:
        console.print(f"seed {difference.seed}: {difference.what[0]} ({difference.listing})")
    sys.exit(1 if outcome.different else 0)


if __name__ == "__main__":
    run_command(lambda: typer.run(_main))
