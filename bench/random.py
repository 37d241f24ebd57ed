"""Random programs on an engine's Verilog and on the simulator."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from pe.config import PeConfig
from sim_tb.random.programs import random_config
from support.files import write_atomically
from vip.cli.commands.options import JobsOption, SchedulerOption, file_option, writing
from vip.random_programs import check_random

from .harness.experiment import SIMULATION, BenchError, Measurement, experiment, say_stage


@experiment(tools=SIMULATION, minutes=5)
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
    listing: Annotated[
        Path | None, file_option("Write the programs that differ, and how, if any do.", writing())
    ] = None,
    scheduler: SchedulerOption = None,
    jobs: JobsOption = None,
) -> Iterator[Measurement]:
    """Random programs on the Verilog of an engine and on the simulator: all that they leave.

    Compared are state, fault, registers, scratchpad and memory. A program that differs is an error,
    which names its seed.

    Example: vip bench random --programs 10000 --disturbed 0.5 --json random.json
    """
    config = PeConfig() if engine is None else random_config(engine)
    checked = check_random(
        config,
        programs=programs,
        seed=seed,
        disturbed=disturbed,
        scheduler=scheduler,
        jobs=jobs,
        progress=say_stage,
    )
    if listing is not None and checked.different:
        write_atomically(listing, "\n".join(one.listing for one in checked.different).encode())
    for one in checked.different:
        count = len(checked.different) - 1
        rest = f"; {count:,} others differ" if count else ""
        raise BenchError(f"seed {one.seed}: {one.what[0]}{rest}")
    for name, value in checked.sums.items():
        yield Measurement(name, value, "", None)
