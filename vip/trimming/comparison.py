"""A full engine and the one trimmed to applications, compared: a row of the savings of trimming.

A row holds an engine with sizes that are proved for every input: its area on Xilinx 7-series and
its power against the full engine's, and the applications on both in cosimulation. Neither has
performance counters.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pe.config import PeConfig
from sim_tb.cosim.applications import Application
from sim_tb.cosim.engine import PeSimulation
from sim_tb.cosim.kernels import run_work
from sim_tb.cosim.recorded import record_workload
from sim_tb.cosim.trim_check import Measured, check_trimmed, measure
from soc.generate.presets import preset
from synth.analysis.trim import TrimReport
from synth.physical.area import synthesise
from vip.synthesis.energy import engine_power

from .rows import CELLS, POWER_MHZ, TARGET, TrimRow
from .runs import SLOWER, demand, proved_cut
from .subjects import known_launches

__all__ = ["UNIONS", "compare"]

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
        power: measure that of both engines too.

    Raises:
        VipError: an engine that can't be built, simulated or synthesised.
    """
    # Only the profiled launches have counters, which give the number of bytes moved.
    counted = preset(members[0].preset)
    full = replace(counted, counters=False)
    works = [work for item in members for work in item.workloads]
    runs = [measure(work, counted, slower=SLOWER) for work in works]
    before = [measure(run.work, full, watched=False) for run in runs]
    cut = proved_cut(known_launches(members, full), full, runs)
    checks = [
        check_trimmed(
            run.work,
            full,
            cut.trimmed,
            before=one,
            try_removed=not number,
            ports_only=power,
            slower=SLOWER,
        )
        for number, (run, one) in enumerate(zip(runs, before, strict=True))
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
        cycles_full=sum(run.own_cycles for run in before),
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
    """Power of ``config`` over all cycles of ``runs``, in mW, in all and by part."""
    recorded = [record_workload(run.work, config, full.address_bits) for run in runs]
    return engine_power(recorded, config, CELLS, jobs=1).report.total.parts(POWER_MHZ)


def _joined(parts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The union of ``parts``, each element once."""
    return tuple(dict.fromkeys(name for part in parts for name in part))
