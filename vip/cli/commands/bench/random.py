"""``vip bench random``: random programs on an engine's Verilog and on the simulator."""

from typing import Annotated

import typer

from pe.config import PeConfig
from sim_tb.random.configs import random_config
from vip.cli.console import console, shown
from vip.output import write_json
from vip.random_programs import check_random

from ..options import JobsOption, JsonOption, SchedulerOption

__all__ = ["random"]


def random(
    programs: Annotated[int, typer.Option(min=1, max=10**9, help="How many.")] = 2000,
    seed: Annotated[
        int, typer.Option(min=0, max=2**62, help="Of the first; the others follow.")
    ] = 1,
    engine: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=2**62,
            metavar="NUMBER",
            help="Of a random small engine (default: the full one).",
        ),
    ] = None,
    disturbed: Annotated[
        float, typer.Option(min=0, max=1, help="Share with memory errors or a stop.")
    ] = 0.0,
    scheduler: SchedulerOption = None,
    jobs: JobsOption = None,
    json: JsonOption = None,
) -> None:
    """Random programs on the Verilog of an engine and on the simulator: all that they leave.

    Compared are state, fault, registers, scratchpad and memory. A program that differs is named by
    its seed, and exit code is 1.

    Example: vip bench random --programs 10000 --disturbed 0.5 --json random.json
    """
    config = PeConfig() if engine is None else random_config(engine)
    with shown() as progress:
        found = check_random(
            config,
            programs=programs,
            seed=seed,
            disturbed=disturbed,
            scheduler=scheduler,
            jobs=jobs,
            progress=progress,
        )
    write_json(json, found.to_json())
    sums = found.sums
    console.print(
        f"{sums['programs']:,} programs ({sums['faulting']:,} fault, {sums['disturbed']:,} "
        f"disturbed, {sums['full']:,} fill the buffer), {sums['cycles']:,} cycles; "
        f"{len(found.different):,} differ"
    )
    for number, lines in found.different.items():
        console.print(f"seed {number}: {lines[0]}", markup=False)
    if found.different:
        raise typer.Exit(1)
