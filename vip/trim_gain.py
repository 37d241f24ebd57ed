"""What the area that trimming frees is worth: estimates for all rows, simulated chips for some."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from hdl.config import PeConfig
from sim_tb.applications import Application
from sim_tb.kept import Kept, fingerprint
from sim_tb.nn_cosim import job_key
from synth.budget import find_budget
from synth.fit import Grid, Step, Surroundings, speed, surroundings

from .fitting import fit_application, fit_json
from .trim_rows import CELLS, POWER_MHZ, TARGET, TrimRow, made_from, means

__all__ = ["DEVICE", "Gain", "Gains", "estimate_gains", "results", "simulate_gain"]

#: What is filled: SCRATCH's device.
DEVICE = "xc7vx690t"
#: Address bits of an engine's window where estimates are made: more than any row needs.
_WINDOW_BITS = 24


@dataclass(frozen=True, kw_only=True)
class Gain:
    """A device full of full engines, and of trimmed ones, by estimate.

    Attributes:
        engines_full, vaults_full, engines_trimmed, vaults_trimmed: that fit.
        throughput_gain: ratio of the work that the chips do in a cycle (:func:`synth.fit.speed`).
    """

    engines_full: int
    vaults_full: int
    engines_trimmed: int
    vaults_trimmed: int
    throughput_gain: float

    def to_json(self) -> dict[str, Any]:
        """The estimate as plain JSON data."""
        return asdict(self)


#: Name of a row -> its estimate.
Gains = Mapping[str, Gain]


def estimate_gains(rows: Sequence[TrimRow], step: Step) -> Gains:
    """What each row gains on :data:`DEVICE`, by areas of its engines and of what is around them.

    Nothing is simulated: vaults count as busy at :data:`synth.fit.VAULT_BYTES` a cycle, and else
    engines work as one alone does. Around trimmed engines is what a full one with a window of
    2 ** 24 bytes needs, which is more than what theirs do.

    Parameters:
        step: called with what is done next.

    Raises:
        synth.errors.SynthesisError: a part that Yosys refuses.
    """
    budget = find_budget(DEVICE)
    around: dict[tuple[PeConfig, bool], Surroundings] = {}

    def best(row: TrimRow, *, trimmed: bool) -> Grid:
        pe = replace(row.full, counters=False, address_bits=_WINDOW_BITS) if trimmed else row.full
        if (pe, trimmed) not in around:
            around[pe, trimmed] = surroundings(pe, budget, trimmed=trimmed, step=step)
        area = row.area_trimmed if trimmed else row.area_full
        return around[pe, trimmed].ranked(area, row.demand)[0]

    found = {}
    for row in rows:
        full, trimmed = best(row, trimmed=False), best(row, trimmed=True)
        found[row.name] = Gain(
            engines_full=full.total,
            vaults_full=full.vaults,
            engines_trimmed=trimmed.total,
            vaults_trimmed=trimmed.vaults,
            throughput_gain=round(speed(trimmed, row.demand) / speed(full, row.demand), 3),
        )
    return found


def simulate_gain(application: Application, step: Step) -> dict[str, Any]:
    """:func:`vip.fitting.fit_application` for :data:`DEVICE` as plain JSON data, made now or kept
    as long as nothing that it rests on changes; ``step`` and errors as there."""
    key = fingerprint(made_from(), *(job_key(job) for job in application.jobs))

    def make() -> dict[str, object]:
        return fit_json(fit_application(application, find_budget(DEVICE), step))

    return dict(Kept("trim_fits").get(key, make))


def results(
    rows: Sequence[TrimRow], gains: Gains, simulated: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """All of it as plain JSON data; ``max_throughput_gain`` is that of simulated chips, of the
    estimates where none was simulated.

    Parameters:
        rows, gains: at least one, each with its estimate.
        simulated: application -> what :func:`simulate_gain` returned.
    """
    estimates = [gain.throughput_gain for gain in gains.values()]
    measured = [one["throughput_gain"] for one in simulated.values()]
    return {
        "target": TARGET,
        "device": DEVICE,
        "power_target": CELLS,
        "power_mhz": POWER_MHZ,
        **means(rows),
        "max_throughput_gain": max(measured or estimates),
        "max_throughput_gain_simulated": bool(measured),
        "rows": [{**row.to_json(), "estimate": gains[row.name].to_json()} for row in rows],
        "simulated": dict(simulated),
    }
