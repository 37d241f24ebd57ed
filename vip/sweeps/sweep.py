"""The verb ``sweep``: measure configurations on kernels, and find the best ones."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from hdl.config import ConfigurationError
from hdl.yosys import need_yosys
from sim_tb.runner.build import need_simulator
from soc.generate.presets import configuration_json, write_configuration
from support.cache import ResultCache
from support.errors import Shown
from support.extras import need, together
from synth.physical.area import MEASURES
from synth.physical.asic import NANGATE45, need_nangate
from vip.executor.executor import Executor, opened, run_missing
from vip.executor.work import Task
from vip.progress import Progress, silent

from .kernels import SweepError
from .specification import (
    LEARNING,
    Choice,
    Specification,
    configuration,
    explore,
    read_specification,
)
from .table import Row, Summary, pareto, summaries, winner, write_page, write_parquet
from .tasks import WORK, code_version, task_key

#: Files of the output folder: all points, the front as a plot, the winner's configuration.
FILES = ("points.parquet", "front.html", "winner.json")
_STAGE = "sweep"


@dataclass(frozen=True, kw_only=True)
class SweepResult(Shown):
    """A sweep.

    Attributes:
        specification: what was measured.
        rows: one per configuration and kernel, ordered by configuration.
        configurations: a summary of each. front: the best ones (:func:`vip.sweeps.table.pareto`).
        winner: the configuration with the smallest product of the objectives.
        measured, kept: number of tasks that ran, and of those whose results were stored already.
    """

    specification: Specification
    rows: Sequence[Row]
    configurations: Sequence[Summary]
    front: Sequence[Summary]
    winner: Summary
    measured: int
    kept: int

    def to_json(self) -> dict[str, object]:
        """The front and the winner as plain JSON data."""
        objectives = self.specification.objectives
        return {
            "points": len(self.rows),
            "configurations": len(self.configurations),
            "failed": sum(bool(one.failed) for one in self.configurations),
            "objectives": list(objectives),
            "front": [_plain(one, objectives) for one in self.front],
            "winner": _plain(self.winner, objectives),
        }


def _plain(one: Summary, objectives: Sequence[str]) -> dict[str, object]:
    values = {name: one.values[name] for name in objectives}
    return {"number": one.number, "fields": one.choice, "objectives": values}


def sweep(
    specification: Specification | Path | str,
    output: Path | str,
    *,
    scheduler: str | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> SweepResult:
    """Measure configurations on kernels, and write :data:`FILES` into the folder ``output``.

    ``sweep("sweep.toml", "build/sweep").winner.choice`` has the fields of the best configuration.
    Results are stored by content, so an interrupted sweep resumes and writes the same files.

    Parameters:
        specification: the sweep, or its TOML file.
        output: folder; created if missing.
        scheduler: address of a Dask scheduler; None: local processes.
        jobs: number of local processes; None: one per processor.
        progress: called after each task.

    Raises:
        SweepError: the specification can't be used, or no configuration has a result.
        vip.executor.work.ExecutorError: as for :func:`vip.executor.executor.opened`.
        MissingExtraError: a package is missing; the message names the extra.
        OSError: a file can't be read or written.
    """
    if not isinstance(specification, Specification):
        specification = read_specification(Path(specification))
    _check_objectives(specification)
    _need_tools(specification, local=scheduler is None)
    rows: list[Row] = []
    counts = Counter(measured=0, kept=0)
    if specification.method == "grid":
        # Other searches don't know it.
        tasks = len(specification.kernels) + _hardware_tasks(specification)
        counts["all"] = specification.size * tasks
    with opened(WORK, scheduler=scheduler, jobs=jobs) as executor:
        results = partial(_results, executor, code_version(), counts, progress)

        def measure(batch: Sequence[Choice]) -> list[tuple[float, ...] | None]:
            new = list(_rows(specification, batch, len(rows), results, counts))
            rows.extend(new)
            learned = summaries(new, tuple(specification.vary))
            return [_objectives(one, specification) for one in learned]

        explore(specification, measure)
    result = _result(specification, rows, counts)
    _write(result, Path(output))
    return result


def _result(specification: Specification, rows: list[Row], counts: Counter[str]) -> SweepResult:
    summarised = summaries(rows, tuple(specification.vary))
    best = winner(summarised, specification.objectives)
    if best is None:
        raise SweepError(f"no configuration has a result; the first: {rows[0]['message']}")
    return SweepResult(
        specification=specification,
        rows=rows,
        configurations=summarised,
        front=pareto(summarised, specification.objectives),
        winner=best,
        measured=counts["measured"],
        kept=counts["kept"],
    )


def _results(
    executor: Executor,
    code: str,
    counts: Counter[str],
    progress: Progress,
    tasks: Sequence[Task],
) -> list[dict[str, Any]]:
    """The result of each task: stored, or measured now."""
    keys = [task_key(task, code) for task in tasks]
    by_key = {}
    cache = ResultCache("sweeps")
    for key, result, ran in run_missing(nullcontext(executor), tasks, keys, cache):
        by_key[key] = result
        counts["measured" if ran else "kept"] += 1
        progress(_STAGE, counts["measured"] + counts["kept"], counts.get("all"))
    return [by_key[key] for key in keys]


def _need_tools(spec: Specification, *, local: bool) -> None:
    """Check that all packages are installed and, if its tasks run on this machine
    (``local``), their tools."""
    with together():
        for package in ("pyarrow", "plotly"):
            need(package, "sweeps")
        if spec.method in LEARNING:
            need("optuna", "searches other than grid and random")
        if not local:
            return
        if spec.rtl or spec.power:
            need_simulator()
        elif spec.targets or spec.clock:
            need_yosys()
        if spec.clock or spec.power:
            need_nangate(NANGATE45)


def _hardware_tasks(spec: Specification) -> int:
    """Number of hardware tasks of a configuration on which all kernels have run."""
    return len(spec.targets) + spec.clock + spec.power * len(spec.kernels)


def _area_column(spec: Specification, target: str, measure: str) -> str:
    """Column of an area measure; with several targets, the target's name precedes it."""
    return measure if len(spec.targets) == 1 else f"{target}_{measure}"


def _check_objectives(spec: Specification) -> None:
    measures = ["cycles", "time_us"]
    measures += [_area_column(spec, target, name) for target in spec.targets for name in MEASURES]
    measures += ["cells_logic_ge"] if spec.clock else []
    measures += ["power_mw", "energy_nj"] if spec.power else []
    measures = [name for name in measures if not name.endswith("fmax_mhz")]
    for name in spec.objectives:
        if name not in measures:
            raise SweepError(f"unknown objective {name!r}; there are: {', '.join(measures)}")


def _objectives(one: Summary, spec: Specification) -> tuple[float, ...] | None:
    missing = [name for name in spec.objectives if name not in one.values]
    if missing and not one.failed:
        raise SweepError(
            f"objective {missing[0]!r} is not measured; there are: {', '.join(sorted(one.values))}"
        )
    return one.objectives(spec.objectives)


def _rows(
    spec: Specification,
    batch: Sequence[Choice],
    first: int,
    results: Callable[[Sequence[Task]], list[dict[str, Any]]],
    counts: Counter[str],
) -> Iterator[Row]:
    """The rows of a batch: one per choice and kernel.

    Parameters:
        first: number of rows before it. results: of tasks. counts: the number of all tasks, if
            known.

    Area, clock and power, which take far longer than the cycles, are measured only for
    configurations on which all kernels have run.
    """
    choices = dict(enumerate(batch, first // len(spec.kernels)))
    configs: dict[int, dict[str, Any]] = {}
    refused: dict[int, dict[str, Any]] = {}
    for number, choice in choices.items():
        try:
            configs[number] = configuration_json(configuration(spec.base, choice))
        except ConfigurationError as error:
            refused[number] = {"error": str(error)}
    runs = {number: _runs(spec, choices[number], config) for number, config in configs.items()}
    cycles = _measured(runs, results)
    sound = {number: configs[number] for number in cycles if not _problem(cycles[number])}
    if "all" in counts:
        counts["all"] -= (len(configs) - len(sound)) * _hardware_tasks(spec)
    hardware = _measured({n: _hardware(spec, config) for n, config in sound.items()}, results)
    for number, choice in choices.items():
        on = "" if number in refused else spec.on(choice)
        shared, powers = hardware.get(number, []), []
        if spec.power and shared:
            powers = shared[-len(spec.kernels) :]
            shared = shared[: -len(spec.kernels)]
        for place, name in enumerate(spec.names):
            own = [refused[number]] if number in refused else cycles[number][place : place + 1]
            head = {"number": number, **choice, "kernel": name, "on": on}
            yield _row(spec, head, [*own, *shared, *powers[place : place + 1]])


def _runs(spec: Specification, choice: Choice, config: dict[str, Any]) -> list[Task]:
    on = spec.on(choice)
    shared: dict[str, Any] = {"on": on, "configuration": config}
    return [{"kind": "cycles", "kernel": dict(kernel), **shared} for kernel in spec.kernels]


def _hardware(spec: Specification, config: dict[str, Any]) -> list[Task]:
    """The measurements of :func:`_hardware_tasks`: areas, clock, power of each kernel."""
    shared: dict[str, Any] = {"configuration": config}
    tasks: list[Task] = [{"kind": "area", "target": name, **shared} for name in spec.targets]
    if spec.clock:
        tasks.append({"kind": "clock", **shared})
    if spec.power:
        tasks += [{"kind": "power", "kernel": dict(one), **shared} for one in spec.kernels]
    return tasks


def _measured(
    tasks: Mapping[int, Sequence[Task]],
    results: Callable[[Sequence[Task]], list[dict[str, Any]]],
) -> dict[int, list[dict[str, Any]]]:
    """The results of the tasks of each configuration, which are measured together."""
    measured = iter(results([task for group in tasks.values() for task in group]))
    return {number: list(islice(measured, len(group))) for number, group in tasks.items()}


def _problem(parts: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The first part that is not a result; None: all are."""
    return next((part for part in parts if "error" in part or "lost" in part), None)


def _row(spec: Specification, head: Row, parts: Sequence[dict[str, Any]]) -> Row:
    """The row of a kernel.

    Parameters:
        head: its first columns.
        parts: results of the kernel's run, then, if they were measured, the areas, the clock, and
            the power of the kernel.
    """
    problem = _problem(parts)
    if problem is not None:
        message = problem.get("error") or problem["lost"]
        status = "refused" if "error" in problem else "failed"
        return {**head, "status": status, "message": message}
    cycles, *hardware = parts
    row: Row = {**head, "status": "ok", "message": "", **cycles}
    for target, part in zip(spec.targets, hardware, strict=False):
        row |= {_area_column(spec, target, key): value for key, value in part.items()}
    for part in hardware[len(spec.targets) :]:
        row |= part
    mhz = row.get("fmax_mhz", spec.mhz)
    row["time_us"] = row["cycles"] / mhz
    if "pj_per_cycle" in row:
        row["power_mw"] = row["pj_per_cycle"] * mhz * 1e-3 + row["leakage_mw"]
        row["energy_nj"] = row["power_mw"] * row["time_us"]
    return row


def _write(result: SweepResult, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    points, front, best = (folder / name for name in FILES)
    write_parquet(result.rows, points)
    write_page(result.configurations, result.front, result.specification.objectives, front)
    write_configuration(configuration(result.specification.base, result.winner.choice), best)
