"""Random programs on an engine's Verilog and on the simulator."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from pe.config import PeConfig
from sim_tb.random.comparison import ENOUGH, RandomReport, check_programs
from sim_tb.random.programs import random_config
from sim_tb.runner.build import need_simulator
from soc.generate.presets import configuration_as, configuration_json
from support.files import write_atomically
from vip.cli.commands.options import JobsOption, SchedulerOption, file_option, writing
from vip.executor.executor import opened
from vip.executor.work import Task
from vip.progress import Progress, silent

from .harness.experiment import SIMULATION, BenchError, Measurement, experiment, say_stage

#: Of :mod:`vip.executor.work`.
_WORK = "bench.random:run_part"
#: Programs per part; each part starts a simulator.
_PART = 250


def run_part(task: Task) -> dict[str, Any]:
    """The comparison of ``programs`` from ``seed`` on, on the engine ``configuration``, as plain
    data."""
    outcome = check_programs(
        configuration_as(PeConfig, task["configuration"]),
        programs=task["programs"],
        seed=task["seed"],
        disturbed=task["disturbed"],
    )
    return {"report": asdict(outcome)}


def _parts(config: PeConfig, programs: int, seed: int, disturbed: float) -> Iterator[Task]:
    shared = {"configuration": configuration_json(config), "disturbed": disturbed}
    for done in range(0, programs, _PART):
        yield {"programs": min(_PART, programs - done), "seed": seed + done, **shared}


def check_random(
    config: PeConfig,
    *,
    programs: int,
    seed: int = 1,
    disturbed: float = 0.0,
    scheduler: str | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> RandomReport:
    """:func:`sim_tb.random.comparison.check_programs` in parts, several at a time.

    Parameters:
        config, programs, seed, disturbed: as there.
        scheduler: address of a Dask scheduler whose workers compare; None: local processes. jobs:
            how many; None: one per processor.
        progress: called with the number of programs compared.

    Raises:
        BenchError: a simulator can't be built, or a process ended; it names the first seed.
        MissingExtraError: this machine is to run Verilog but lacks a tool for it.
        vip.executor.work.ExecutorError: as :func:`vip.executor.executor.opened`.
    """
    if scheduler is None:
        need_simulator()
    tasks = list(_parts(config, programs, seed, disturbed))
    parts: list[RandomReport] = []
    progress("random programs", 0, programs)
    with opened(_WORK, scheduler=scheduler, jobs=jobs) as executor:
        for number, result in executor(tasks):
            if "report" not in result:
                reason = result.get("error") or result["lost"]
                raise BenchError(f"programs from seed {tasks[number]['seed']} on: {reason}")
            parts.append(RandomReport.from_json(result["report"]))
            progress("random programs", sum(part.programs for part in parts), programs)
            if sum(len(part.different) for part in parts) >= ENOUGH:
                break
    return RandomReport.joined(parts)


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
