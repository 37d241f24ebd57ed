"""Savings of trimming on each application of the suite, and on unions of some.

A row holds an engine with sizes that are proved for every input: its area on Xilinx 7-series and
its power against the full engine's, and the applications on both in cosimulation. Neither has
performance counters. Finished rows are cached as long as no source or tool that they depend on
changes; of an interrupted row the syntheses and simulators are cached.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pe.config import PeConfig
from sim_tb.cosim.applications import Application, applications, choose
from sim_tb.cosim.engine import PeSimulation
from sim_tb.cosim.kernels import cosim_job, job_key
from sim_tb.cosim.recorded import record_workload
from sim_tb.cosim.trim_check import Measured, check_trimmed, measure
from sim_tb.runner.cache import Kept, fingerprint
from soc.generate.presets import preset
from synth.analysis.trim import TrimReport
from synth.physical.area import synthesise
from vip.synthesis.energy import check_power_target, engine_power

from .rows import CELLS, POWER_MHZ, TARGET, TrimmedEngine, TrimRow, made_from
from .runs import SLOWER, Observed, demand, observe, proved_cut
from .subjects import known_launches

__all__ = ["QUICK", "UNIONS", "measure_trims"]

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
#: Applications of a quick measurement.
QUICK = ("matrix-addition", "max-pooling")

#: Called with the name of a row, and how many of how many rows are done.
Progress = Callable[[str, int, int], None]


def measure_trims(
    names: Sequence[str] = (), progress: Progress | None = None, *, power: bool = True
) -> list[TrimRow]:
    """A row for each application, then one for each union; this may take an hour.

    Parameters:
        names: of the applications; none: all, and the unions.
        progress: called when a row begins, and at the end.
        power: measure that of both engines too.

    Raises:
        ApplicationError: a name that no application has.
        VipError: an engine that can't be built, simulated or synthesised.
    """
    wanted: list[tuple[str, tuple[Application, ...]]] = [
        (item.name, (item,)) for item in choose(names)
    ]
    if not names:
        known = {item.name: item for item in applications()}
        wanted += [(union, tuple(known[name] for name in of)) for union, of in UNIONS.items()]
    if power:
        check_power_target(CELLS)
    bench = _Bench(power)
    rows = []
    for number, (name, members) in enumerate(wanted):
        if progress is not None:
            progress(name, number, len(wanted))
        rows.append(bench.row(name, members))
    if progress is not None:
        progress("done", len(wanted), len(wanted))
    return rows


class _Bench:
    """Rows, computed now or cached.

    Parameters:
        power: whether it is measured.
    """

    def __init__(self, power: bool) -> None:
        self._power = power
        self._kept = Kept("trim_rows")
        self._made_from = made_from()
        self._seen: dict[str, list[Observed]] = {}

    def row(self, name: str, members: Sequence[Application]) -> TrimRow:
        """The engine ``name`` for ``members``."""
        jobs = [job_key(job) for item in members for job in item.jobs]
        key = fingerprint(name, self._made_from, str(self._power), members[0].preset, *jobs)
        return TrimRow.from_json(self._kept.get(key, partial(self._made, name, members)))

    def _made(self, name: str, members: Sequence[Application]) -> dict[str, object]:
        # Only the profiled launches have counters, which give the number of bytes moved.
        counted = preset(members[0].preset)
        full = replace(counted, counters=False)
        runs = [run for item in members for run in self._observed(item, counted)]
        before = [measure(run.work, full, watched=False) for run in runs]
        cut = proved_cut(known_launches(members, full), full, runs)
        return TrimRow(
            name=name,
            applications=tuple(item.name for item in members),
            full=full,
            area_full=synthesise(full, TARGET, jobs=1).total.values,
            power_full=_power_of(runs, full, full) if self._power else {},
            cycles_full=sum(run.own_cycles for run in before),
            demand=round(demand(runs), 4),
            trimmed=self._engine(members, cut, before, runs),
        ).to_json()

    def _engine(
        self,
        members: Sequence[Application],
        cut: TrimReport,
        before: Sequence[Measured],
        runs: Sequence[Observed],
    ) -> TrimmedEngine:
        """The engine of ``cut``, compared with the full one's runs ``before``."""
        checks = [
            check_trimmed(
                run.work,
                cut.full,
                cut.trimmed,
                before=one,
                try_removed=not number,
                ports_only=self._power,
                slower=SLOWER,
            )
            for number, (run, one) in enumerate(zip(runs, before, strict=True))
        ]
        return TrimmedEngine(
            config=cut.trimmed,
            area=synthesise(cut.trimmed, TARGET, jobs=1).total.values,
            power=_power_of(runs, cut.trimmed, cut.full) if self._power else {},
            cycles=sum(check.cycles_trimmed for check in checks),
            different=_joined(check.different for check in checks),
            unfaulted=_joined(check.unfaulted for check in checks),
            exact=_exact(members, cut, ports_only=self._power),
        )

    def _observed(self, item: Application, counted: PeConfig) -> list[Observed]:
        """The launches of ``item`` on its full engine, each profiled once."""
        if item.name not in self._seen:
            self._seen[item.name] = [
                observe(work, counted, slower=SLOWER) for work in item.workloads
            ]
        return self._seen[item.name]


def _exact(members: Sequence[Application], cut: TrimReport, *, ports_only: bool) -> bool:
    """Whether the results of all launches on the trimmed engine equal their golden models'."""
    size = 1 << cut.full.address_bits
    with PeSimulation(cut.trimmed, ports_only=ports_only) as simulation:
        return all(
            cosim_job(job, simulation, memory_bytes=size).match
            for item in members
            for job in item.jobs
        )


def _power_of(runs: Sequence[Observed], config: PeConfig, full: PeConfig) -> dict[str, float]:
    """Power of ``config`` over all cycles of ``runs``, in mW, in all and by part."""
    recorded = [record_workload(run.work, config, full.address_bits) for run in runs]
    return engine_power(recorded, config, CELLS, jobs=1).report.total.parts(POWER_MHZ)


def _joined(parts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The union of ``parts``, each element once."""
    return tuple(dict.fromkeys(name for part in parts for name in part))
