"""What trimming saves for each application of the suite and for unions of some, several rows at a
time.

A row has an engine with sizes that are proved for every input: its area on Xilinx 7-series and its
power against the full engine's, and the applications on both in cosimulation. Neither has
performance counters.

Finished rows are cached as long as no source or tool that they depend on changes; for an
interrupted row the syntheses and simulators are cached.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from microkernels.suite import Application, choose, suite
from pe.config import PeConfig
from sim_tb.cosim.engine import PeSimulation
from sim_tb.cosim.kernels import run_work
from sim_tb.cosim.recorded import record_again
from sim_tb.cosim.trim_check import Measured, check_trimmed, measure
from sim_tb.runner.build import need_simulator
from sim_tb.runner.cache import fingerprint
from soc.generate.presets import preset
from support.cache import ResultCache
from support.errors import VipError
from synth.analysis.trim import TrimReport
from synth.physical.area import synthesise
from vip.executor.executor import check_scheduler, opened, run_missing
from vip.executor.work import Task
from vip.progress import Progress, silent
from vip.synthesis.power import check_power_target, engine_power

from .rows import CELLS, POWER_MHZ, TARGET, TrimRow, launches_of, made_from
from .runs import SLOWER, demand, known_launches, proved_cut

#: Name -> applications that one trimmed engine runs.
UNIONS: Mapping[str, tuple[str, ...]] = {
    "all of BP": ("bp", "bp-construct", "bp-copy"),
    "all pooling": ("max-pooling", "average-pooling", "median-pooling", "vgg-pooling"),
    "all matrices": (
        "matrix-addition",
        "matrix-multiplication",
        "matrix-transposition",
        "gaussian-elimination",
    ),
}


def compare(name: str, members: Sequence[Application], *, power: bool) -> TrimRow:
    """The row ``name``: an engine trimmed to all of ``members``, on their full engine.

    Tools run one at a time. Syntheses and simulators are cached.

    Parameters:
        members: at least one; all have the preset of the first.
        power: also measure the power of both engines.

    Raises:
        VipError: an engine can't be built, simulated or synthesised.
    """
    # Only the profiled launches have counters, which give the number of bytes moved.
    counted = preset(members[0].preset)
    full = replace(counted, counters=False)
    works = [work for item in members for work in item.workloads]
    runs = [measure(*work, counted, slower=SLOWER) for work in works]
    before = [measure(*work, full, watched=False) for work in works]
    cut = proved_cut(known_launches(members, full), full, runs)
    checks = [
        check_trimmed(
            run,
            full,
            cut.trimmed,
            try_removed=not number,
            ports_only=power,
            slower=SLOWER,
        )
        for number, run in enumerate(before)
    ]
    return TrimRow(
        name=name,
        applications=tuple(item.name for item in members),
        full=full,
        trimmed=cut.trimmed,
        area_full=synthesise(full, TARGET, jobs=1).total.values,
        area_trimmed=synthesise(cut.trimmed, TARGET, jobs=1).total.values,
        power_full=_power_of(runs, full, full) if power else {},
        power_trimmed=_power_of(runs, cut.trimmed, full) if power else {},
        cycles_full=sum(run.result.cycles for run in before),
        cycles_trimmed=sum(check.cycles_trimmed for check in checks),
        demand=round(demand(runs), 4),
        different=_joined(check.different for check in checks),
        unfaulted=_joined(check.unfaulted for check in checks),
        exact=_exact(members, cut, ports_only=power),
    )


def _exact(members: Sequence[Application], cut: TrimReport, *, ports_only: bool) -> bool:
    """Whether the results of all launches on the trimmed engine equal their golden models'."""
    size = 1 << cut.full.address_bits
    with PeSimulation(cut.trimmed, ports_only=ports_only) as simulation:
        return all(
            run_work(job, simulation, memory_bytes=size).match
            for item in members
            for job in item.jobs
        )


def _power_of(runs: Sequence[Measured], config: PeConfig, full: PeConfig) -> dict[str, float]:
    """Power of ``config`` over all cycles of ``runs``, in mW, in total and by part."""
    recorded = [record_again(run, config, full.address_bits) for run in runs]
    return engine_power(recorded, config, CELLS, jobs=1).total.parts(POWER_MHZ)


def _joined(parts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The union of ``parts``, each element once."""
    return tuple(dict.fromkeys(name for part in parts for name in part))


#: :func:`run_row` for :mod:`vip.executor.work`.
_WORK = "vip.trimming.suite:run_row"
_STAGE = "trimming"


class TrimSuiteError(VipError):
    """A row that could not be measured; the message names it."""


def run_row(task: Task) -> dict[str, Any]:
    """The ``row`` of ``name`` for ``applications``, with or without ``power``, as plain data."""
    members = _members(task["applications"])
    return {"row": compare(task["name"], members, power=task["power"]).to_json()}


def _members(names: Sequence[str]) -> list[Application]:
    return [suite()[name] for name in names]


def measure_trims(
    names: Sequence[str] = (),
    *,
    power: bool = True,
    scheduler: str | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> list[TrimRow]:
    """A row for each application, then one for each union; this may take an hour.

    Parameters:
        names: of the applications; none: all, and the unions.
        power: also measure the power of both engines.
        scheduler: address of a Dask scheduler whose workers measure, each one row at a time; None:
            local processes. jobs: number of local processes; None: one per processor.
        progress: called with the number of rows that are done.

    Raises:
        ApplicationError: no application has such a name.
        TrimSuiteError: an engine can't be built, simulated or synthesised, or a process ended.
        MissingExtraError: the cells for power are not installed, or, without ``scheduler``, a tool
            that runs Verilog.
        vip.executor.work.ExecutorError: as for :func:`vip.executor.executor.opened`.
    """
    check_scheduler(_WORK, scheduler)
    rows_of: dict[str, tuple[str, ...]] = {item.name: (item.name,) for item in choose(names)}
    if not names:
        rows_of |= UNIONS
    if power:
        check_power_target(CELLS)
    cache = ResultCache("trim_rows")
    sources = made_from()
    keys = {name: _key(name, of, sources, power) for name, of in rows_of.items()}
    tasks = [
        {"name": name, "applications": list(of), "power": power} for name, of in rows_of.items()
    ]
    if scheduler is None and any(cache.known(key) is None for key in keys.values()):
        need_simulator()
    progress(_STAGE, 0, len(rows_of))
    rows: dict[str, TrimRow] = {}
    executor = opened(_WORK, scheduler=scheduler, jobs=jobs)
    names_of = {key: name for name, key in keys.items()}
    for key, result, _ in run_missing(executor, tasks, list(keys.values()), cache):
        name = names_of[key]
        if "row" not in result:
            raise TrimSuiteError(f"{name}: {result.get('error') or result['lost']}")
        rows[name] = TrimRow.from_json(result["row"])
        progress(_STAGE, len(rows), len(rows_of), name)
    return [rows[name] for name in rows_of]


def _key(name: str, of: Sequence[str], sources: str, power: bool) -> str:
    members = _members(of)
    works = [key for item in members for key in launches_of(item)]
    return fingerprint(name, sources, str(power), members[0].preset, *works)
