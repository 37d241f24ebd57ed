"""What trimming saves on each application of the suite, and on unions of some.

A row is a trimmed engine: its area on Xilinx 7-series and its power against those of the full one,
and its applications on both in cosimulation. Finished rows are kept as long as no source or tool
that they rest on changes; of a broken one its syntheses and simulators are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from hdl.config import PeConfig
from sim_tb.applications import Application, applications, choose
from sim_tb.cosim import PeSimulation
from sim_tb.kept import Kept, fingerprint
from sim_tb.nn_cosim import cosim_nn, job_key
from sim_tb.recorded import record_workload
from sim_tb.trim_check import check_trimmed
from soc.presets import preset
from synth.area import synthesise
from synth.errors import TrimError
from synth.trim import TrimReport, report

from .fitting import demand
from .power import check_power_target, engine_power
from .trim_rows import CELLS, POWER_MHZ, TARGET, TrimRow, made_from
from .trimming import Observed, observe

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
        power: measure it too.

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
    """Rows, made now or kept.

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
        full = preset(members[0].preset)
        runs = [run for item in members for run in self._observed(item, full)]
        cut, uncovered = _cut(members, full, runs)
        checks = [
            check_trimmed(
                run.work,
                full,
                cut.trimmed,
                before=run.measured,
                try_removed=not number,
                ports_only=self._power,
            )
            for number, run in enumerate(runs)
        ]
        return TrimRow(
            name=name,
            applications=tuple(item.name for item in members),
            full=full,
            trimmed=cut.trimmed,
            area_full=synthesise(full, TARGET, jobs=1).total.values,
            area_trimmed=synthesise(cut.trimmed, TARGET, jobs=1).total.values,
            power_full=self._power_of(runs, full, full),
            power_trimmed=self._power_of(runs, cut.trimmed, full),
            cycles_full=sum(check.cycles_full for check in checks),
            cycles_trimmed=sum(check.cycles_trimmed for check in checks),
            demand=round(demand(runs), 4),
            different=_joined(check.different for check in checks),
            unfaulted=_joined(check.unfaulted for check in checks),
            exact=self._exact(members, cut.trimmed),
            profiled=tuple(bound.name for bound in cut.bounds if bound.basis == "profiled"),
            uncovered=uncovered,
        ).to_json()

    def _exact(self, members: Sequence[Application], trimmed: PeConfig) -> bool:
        """Whether all launches leave what their golden models demand on the trimmed engine."""
        with PeSimulation(trimmed, ports_only=self._power) as simulation:
            return all(cosim_nn(job, simulation).match for item in members for job in item.jobs)

    def _observed(self, item: Application, full: PeConfig) -> list[Observed]:
        """The launches of ``item`` on its full engine, seen once."""
        if item.name not in self._seen:
            self._seen[item.name] = [observe(work, full) for work in item.workloads]
        return self._seen[item.name]

    def _power_of(
        self, runs: Sequence[Observed], config: PeConfig, full: PeConfig
    ) -> dict[str, float]:
        """Power of ``config`` over all cycles of ``runs``, in mW, in all and by part."""
        if not self._power:
            return {}
        recorded = [record_workload(run.work, config, full.address_bits) for run in runs]
        return engine_power(recorded, config, CELLS, jobs=1).report.total.parts(POWER_MHZ)


def _joined(parts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Whatever is in any of ``parts``, once."""
    return tuple(dict.fromkeys(name for part in parts for name in part))


def _cut(
    members: Sequence[Application], full: PeConfig, runs: Sequence[Observed]
) -> tuple[TrimReport, str]:
    """What is trimmed, and which branches the runs do not cover."""
    programs = list(dict.fromkeys(program for item in members for program in item.programs))
    profiles = [run.profile for run in runs]
    try:
        return report(programs, full, profiles), ""
    except TrimError as error:
        return report(programs, full, profiles, allow_uncovered=True), str(error)
