"""Random programs on an engine's Verilog and on the simulator, in parts that run in parallel."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pe.config import PeConfig
from sim_tb.random.comparison import ENOUGH, RandomReport, check_programs
from sim_tb.runner.build import need_simulator
from soc.generate.presets import configuration_as, configuration_json
from support.errors import VipError
from vip.executor.executor import opened
from vip.executor.work import Task
from vip.progress import Progress, silent

#: Of :mod:`vip.executor.work`.
_WORK = "vip.random_programs:run_part"
#: Programs per part; each part starts a simulator.
_PART = 250


class RandomError(VipError):
    """Programs that could not be compared; the message names the first seed."""


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
        RandomError: a simulator can't be built, or a process ended.
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
                raise RandomError(f"programs from seed {tasks[number]['seed']} on: {reason}")
            parts.append(RandomReport.from_json(result["report"]))
            progress("random programs", sum(part.programs for part in parts), programs)
            if sum(len(part.different) for part in parts) >= ENOUGH:
                break
    return RandomReport.joined(parts)
