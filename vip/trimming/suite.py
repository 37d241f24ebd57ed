"""Savings of trimming on each application of the suite, and on unions of some, several rows at a
time.

Finished rows are cached as long as no source or tool that they depend on changes; of an interrupted
row the syntheses and simulators are cached.
"""

from collections.abc import Sequence
from typing import Any

from sim_tb.cosim.applications import Application, applications, choose
from sim_tb.cosim.kernels import job_key
from sim_tb.runner.build import need_simulator
from sim_tb.runner.cache import ResultCache, fingerprint
from support.errors import VipError
from vip.executor.executor import check_scheduler, opened
from vip.executor.work import Task
from vip.progress import Progress, silent
from vip.synthesis.energy import check_power_target

from .comparison import UNIONS, compare
from .rows import CELLS, TrimRow, made_from

__all__ = ["QUICK", "TrimSuiteError", "measure_trims", "run_row"]

#: Applications of a quick measurement.
QUICK = ("matrix-addition", "max-pooling")

#: Of :mod:`vip.executor.work`.
_WORK = "vip.trimming.suite:run_row"
_STAGE = "trimming"


class TrimSuiteError(VipError):
    """A row that could not be measured; the message names it."""


def run_row(task: Task) -> dict[str, Any]:
    """The ``row`` of ``name`` for ``applications``, with or without ``power``, as plain data; or
    ``error``: one line."""
    try:
        members = _members(task["applications"])
        row = compare(task["name"], members, power=task["power"])
    except VipError as error:
        return {"error": str(error).splitlines()[0]}
    return {"row": row.to_json()}


def _members(names: Sequence[str]) -> list[Application]:
    suite = {item.name: item for item in applications()}
    return [suite[name] for name in names]


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
        power: measure that of both engines too.
        scheduler: address of a Dask scheduler whose workers measure, each a row at a time; None:
            processes of this machine. jobs: how many; None: one a processor.
        progress: called with the number of rows that are done.

    Raises:
        ApplicationError: a name that no application has.
        TrimSuiteError: an engine that can't be built, simulated or synthesised, or a process ended.
        MissingExtraError: cells for the power are not installed, or a tool that runs Verilog on
            this machine, which is to.
        vip.executor.work.ExecutorError: as :func:`vip.executor.executor.opened`.
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
    rows = {name: cache.known(key) for name, key in keys.items()}
    missing = [name for name, row in rows.items() if row is None]
    progress(_STAGE, len(rows_of) - len(missing), len(rows_of))
    tasks = [
        {"name": name, "applications": list(rows_of[name]), "power": power} for name in missing
    ]
    if tasks and scheduler is None:
        need_simulator()
    if tasks:
        with opened(_WORK, scheduler=scheduler, jobs=jobs) as executor:
            for number, result in executor(tasks):
                name = missing[number]
                if "row" not in result:
                    raise TrimSuiteError(f"{name}: {result.get('error') or result['lost']}")
                rows[name] = result["row"]
                cache.keep(keys[name], result["row"])
                done = sum(row is not None for row in rows.values())
                progress(_STAGE, done, len(rows_of), name)
    return [TrimRow.from_json(row) for row in rows.values() if row is not None]


def _key(name: str, of: Sequence[str], sources: str, power: bool) -> str:
    members = _members(of)
    jobs = [job_key(job) for item in members for job in item.jobs]
    return fingerprint(name, sources, str(power), members[0].preset, *jobs)
