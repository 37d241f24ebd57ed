"""``vip sweep``: explore designs."""

from pathlib import Path
from typing import Annotated

import typer

from support.errors import counted
from vip.cli.console import console, shown, table
from vip.cli.groups import Answer
from vip.sweeps.sweep import FILES, SweepResult
from vip.sweeps.sweep import sweep as run_sweep

from .options import JobsOption, SchedulerOption, filling, output_option, reading


def _show(result: SweepResult, folder: Path) -> None:
    objectives = result.specification.objectives
    heads = ("configuration", *result.specification.vary, *objectives)
    front = table(*heads, title=f"Pareto front: {', '.join(objectives)}")
    for one in result.front:
        mark = " *" if one is result.winner else ""
        values = [f"{one.values[name]:,.6g}" for name in objectives]
        front.add_row(f"{one.number}{mark}", *map(str, one.choice.values()), *values)
    console.print(front)
    failed = [one for one in result.configurations if one.failed]
    console.print(
        f"{len(result.configurations)} configurations, {len(result.rows)} points; "
        f"{counted(len(failed), 'configuration')} without a result; {result.measured} tasks "
        f"measured, {result.kept} from the cache."
    )
    if failed:
        console.print(f"The first is {failed[0].number}: {failed[0].failed}", style="dim")
    console.print(f"* smallest product of the objectives. {', '.join(FILES)} are in {folder}.")


def sweep(
    specification: Annotated[
        Path,
        typer.Argument(metavar="SPEC", help="Specification (TOML).", callback=reading()),
    ],
    output: Annotated[
        Path,
        output_option("Folder for the results; created if missing.", filling(FILES), "DIR"),
    ] = Path("build/sweep"),
    scheduler: SchedulerOption = None,
    jobs: JobsOption = None,
) -> Answer:
    """Measure configurations on kernels and write all points, the Pareto front and the best one.

    Cycles come from the timing model, or from the Verilog where the specification says so. Finished
    points are cached: run the command again to continue an interrupted sweep.

    Example: vip sweep sweep.toml -o build/sweep --json front.json
    """
    with shown() as progress:
        result = run_sweep(specification, output, scheduler=scheduler, jobs=jobs, progress=progress)
    _show(result, output)
    return Answer(result.to_json())
