"""What trimming saves on each application of the suite, and on unions of some.

A row is a trimmed engine: its area on Xilinx 7-series against that of the full one, and its
applications on both in cosimulation. Areas and simulators are kept by what they are made from, so
that a run that was broken off goes on where it stopped.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hdl.config import PeConfig
from sim_tb.applications import Application, applications, choose
from sim_tb.cosim import PeSimulation
from sim_tb.nn_cosim import cosim_nn
from sim_tb.trim_check import check_trimmed
from soc.generate import configuration_json
from soc.presets import preset
from synth.area import synthesise
from synth.errors import TrimError
from synth.trim import TrimReport, report

from .trimming import Observed, observe

__all__ = ["QUICK", "SAVED", "TARGET", "UNIONS", "TrimRow", "means", "measure_trims", "results"]

#: What areas are told for.
TARGET = "xc7"
#: Key in reports -> measure of :data:`synth.area.MEASURES`.
SAVED = {"ff_saved": "ffs", "lut_saved": "luts", "dsp_saved": "dsps", "bram_saved": "brams"}
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


@dataclass(frozen=True, kw_only=True)
class TrimRow:
    """One trimmed engine.

    Attributes:
        name: of the application or of the union.
        applications: names of those that the engine runs.
        full, trimmed: configurations.
        area_full, area_trimmed: measure (:data:`synth.area.MEASURES`) -> value.
        cycles_full, cycles_trimmed: of all launches together.
        different: what is not the same on both engines after each launch (see
            :class:`sim_tb.trim_check.TrimCheck`).
        unfaulted: keys of removed instructions that do not fault.
        exact: each launch leaves what the golden model demands.
        profiled: sizes that are those of the runs; all others are proved for every run.
        uncovered: branches of which the runs take one side alone, where there are profiled sizes;
            "" if there are none. A run that needs more than the profiled sizes faults.
    """

    name: str
    applications: tuple[str, ...]
    full: PeConfig
    trimmed: PeConfig
    area_full: Mapping[str, float]
    area_trimmed: Mapping[str, float]
    cycles_full: int
    cycles_trimmed: int
    different: tuple[str, ...]
    unfaulted: tuple[str, ...]
    exact: bool
    profiled: tuple[str, ...]
    uncovered: str

    @property
    def match(self) -> bool:
        """Memory, scratchpad, registers and cycles are the same on both engines, and each removed
        instruction faults."""
        same = self.cycles_full == self.cycles_trimmed
        return same and not self.different and not self.unfaulted

    def saved(self, measure: str) -> float:
        """Fraction of ``measure`` that trimming saves; 0 where there was nothing."""
        was = self.area_full[measure]
        return round(1 - self.area_trimmed[measure] / was, 4) if was else 0.0

    def to_json(self) -> dict[str, object]:
        """The row as plain JSON data."""
        return {
            "name": self.name,
            "applications": list(self.applications),
            **{key: self.saved(measure) for key, measure in SAVED.items()},
            "cycles_full": self.cycles_full,
            "cycles_trimmed": self.cycles_trimmed,
            "match": self.match,
            "different": list(self.different),
            "removed_without_fault": list(self.unfaulted),
            "exact": self.exact,
            "profiled": list(self.profiled),
            "uncovered": self.uncovered,
            "area_full": dict(self.area_full),
            "area_trimmed": dict(self.area_trimmed),
            "configuration": configuration_json(self.trimmed),
            "configuration_full": configuration_json(self.full),
        }


def means(rows: Sequence[TrimRow]) -> dict[str, float]:
    """What the rows of single applications, of which there is one at least, save in the mean."""
    single = [row for row in rows if len(row.applications) == 1]
    return {
        f"mean_{key}": round(sum(row.saved(measure) for row in single) / len(single), 4)
        for key, measure in SAVED.items()
    }


def results(rows: Sequence[TrimRow]) -> dict[str, object]:
    """All rows and their :func:`means` as plain JSON data."""
    return {"target": TARGET, **means(rows), "rows": [row.to_json() for row in rows]}


def measure_trims(names: Sequence[str] = (), progress: Progress | None = None) -> list[TrimRow]:
    """A row for each application, then one for each union; this may take half an hour.

    Parameters:
        names: of the applications; none: all, and the unions.
        progress: called when a row begins, and at the end.

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
    seen: dict[str, list[Observed]] = {}
    rows = []
    for number, (name, members) in enumerate(wanted):
        if progress is not None:
            progress(name, number, len(wanted))
        for item in members:
            if item.name not in seen:
                full = preset(item.preset)
                seen[item.name] = [observe(work, full) for work in item.workloads]
        rows.append(_row(name, members, [run for item in members for run in seen[item.name]]))
    if progress is not None:
        progress("done", len(wanted), len(wanted))
    return rows


def _row(name: str, members: Sequence[Application], runs: Sequence[Observed]) -> TrimRow:
    full = preset(members[0].preset)
    cut, uncovered = _cut(members, full, runs)
    checks = [
        check_trimmed(run.work, full, cut.trimmed, before=run.measured, try_removed=not number)
        for number, run in enumerate(runs)
    ]
    return TrimRow(
        name=name,
        applications=tuple(item.name for item in members),
        full=full,
        trimmed=cut.trimmed,
        area_full=synthesise(full, TARGET, jobs=1).total.values,
        area_trimmed=synthesise(cut.trimmed, TARGET, jobs=1).total.values,
        cycles_full=sum(check.cycles_full for check in checks),
        cycles_trimmed=sum(check.cycles_trimmed for check in checks),
        different=_joined(check.different for check in checks),
        unfaulted=_joined(check.unfaulted for check in checks),
        exact=_exact(members, cut.trimmed),
        profiled=tuple(bound.name for bound in cut.bounds if bound.basis == "profiled"),
        uncovered=uncovered,
    )


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


def _exact(members: Sequence[Application], trimmed: PeConfig) -> bool:
    """Whether all launches leave what their golden models demand on the trimmed engine."""
    with PeSimulation(trimmed) as simulation:
        return all(cosim_nn(job, simulation).match for item in members for job in item.jobs)
