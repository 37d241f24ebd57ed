"""Gain from the area that trimming frees: by simulation of whole chips, or estimated."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pe.config import PeConfig
from sim_tb.cosim.applications import Application
from sim_tb.cosim.kernels import job_key
from sim_tb.runner.cache import ResultCache, fingerprint
from synth.physical.devices import find_budget
from synth.physical.fit import Grid, Step, Surroundings, speed, surroundings

from .filling import CLOCK_MHZ, WINDOW_BITS, fit_application, fit_json
from .rows import CELLS, POWER_MHZ, TARGET, TrimRow, made_from, means

__all__ = ["DEVICE", "Gain", "Gains", "Simulated", "estimate_gains", "results", "simulate_gain"]

#: The device that is filled: SCRATCH's.
DEVICE = "xc7vx690t"


@dataclass(frozen=True, kw_only=True)
class Gain:
    """A device full of full engines, and of trimmed ones, by estimate.

    Attributes:
        engines_full, vaults_full, engines_trimmed, vaults_trimmed: numbers that fit.
        throughput_gain: ratio of the work that the chips do in a cycle
            (:func:`synth.physical.fit.speed`), with the cycles that the trimmed engine takes more.
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
#: Name of an application -> result of :func:`simulate_gain`.
Simulated = Mapping[str, Mapping[str, Any]]


def estimate_gains(rows: Sequence[TrimRow], step: Step) -> Gains:
    """The gain of each row on :data:`DEVICE`, from the areas of its engines and of the logic around
    them, which is the same for full and for trimmed engines (:mod:`synth.physical.fit`).

    Nothing is simulated: a vault counts as busy at :data:`synth.physical.fit.VAULT_BYTES` a cycle;
    below that its engines work as fast as a single engine.

    Parameters:
        step: called with the name of the next step.

    Raises:
        synth.errors.SynthesisError: a part that Yosys refuses.
    """
    budget = find_budget(DEVICE)
    around: dict[PeConfig, Surroundings] = {}

    def best(row: TrimRow, area: Mapping[str, float]) -> Grid:
        pe = replace(row.full, address_bits=WINDOW_BITS)
        if pe not in around:
            around[pe] = surroundings(pe, budget, tag_bits=pe.tag_bits, step=step)
        return around[pe].ranked(area, row.demand)[0]

    estimates: dict[str, Gain] = {}
    for row in rows:
        full = best(row, row.area_full)
        trimmed = best(row, row.area_trimmed)
        faster = speed(trimmed, row.demand / (1 + row.slower)) / speed(full, row.demand)
        estimates[row.name] = Gain(
            engines_full=full.total,
            vaults_full=full.vaults,
            engines_trimmed=trimmed.total,
            vaults_trimmed=trimmed.vaults,
            throughput_gain=round(faster / (1 + row.slower), 3),
        )
    return estimates


def simulate_gain(application: Application, step: Step) -> dict[str, Any]:
    """:func:`vip.trimming.filling.fit_application` for :data:`DEVICE` as plain JSON data,
    computed now or cached as long as no dependency changes; ``step`` and errors as there."""
    key = fingerprint(made_from(), *(job_key(job) for job in application.jobs))

    def make() -> dict[str, object]:
        return fit_json(fit_application(application, find_budget(DEVICE), step))

    return dict(ResultCache("trim_fits").get(key, make))


def results(rows: Sequence[TrimRow], gains: Gains, simulated: Simulated) -> dict[str, Any]:
    """All rows and gains as plain JSON data.

    ``max_throughput_gain`` is that of simulated chips, of the estimates where none was simulated
    (``max_throughput_gain_simulated`` says which).

    Parameters:
        rows, gains: at least one, each with its estimates.
        simulated: chips of some of the applications.
    """

    chips = [one["throughput_gain"] for one in simulated.values()]
    estimates = [gain.throughput_gain for gain in gains.values()]
    return {
        "target": TARGET,
        "device": DEVICE,
        "power_target": CELLS,
        "power_mhz": POWER_MHZ,
        "clock_mhz": CLOCK_MHZ,
        **means(rows),
        "max_throughput_gain": max(chips or estimates),
        "max_throughput_gain_simulated": bool(simulated),
        "rows": [{**row.to_json(), "estimate": gains[row.name].to_json()} for row in rows],
        "simulated": dict(simulated),
    }
