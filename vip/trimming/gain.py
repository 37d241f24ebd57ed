"""Gain from the area that trimming frees, simulated on whole chips or estimated."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pe.config import PeConfig
from sim_tb.cosim.applications import Application
from sim_tb.cosim.kernels import job_key
from sim_tb.runner.cache import ResultCache, fingerprint
from synth.physical.devices import find_device
from synth.physical.fit import Grid, Step, Surroundings, speed, surroundings

from .filling import WINDOW_BITS, fit_application, fit_json
from .rows import TrimRow, made_from

#: The device that is filled: SCRATCH's.
DEVICE = "xc7vx690t"


def estimate_gains(rows: Sequence[TrimRow], step: Step) -> dict[str, float]:
    """By name of row, the work per cycle of :data:`DEVICE` filled with trimmed engines, relative to
    one filled with full engines (:func:`synth.physical.fit.speed`), less the cycles that the
    trimmed engine takes in addition.

    It follows from the areas of the engines and of the logic around them, which is the same for
    full and for trimmed engines (:mod:`synth.physical.fit`).

    Nothing is simulated: a vault counts as busy at :data:`synth.physical.fit.VAULT_BYTES` per
    cycle; below that its engines work as fast as a single engine.

    Parameters:
        step: called with the name of the next step.

    Raises:
        synth.errors.SynthesisError: Yosys refuses a part.
    """
    device = find_device(DEVICE)
    around: dict[PeConfig, Surroundings] = {}

    def best(row: TrimRow, area: Mapping[str, float]) -> Grid:
        pe = replace(row.full, address_bits=WINDOW_BITS)
        if pe not in around:
            around[pe] = surroundings(pe, device, tag_bits=pe.tag_bits, step=step)
        return around[pe].ranked(area, row.demand)[0]

    gains: dict[str, float] = {}
    for row in rows:
        full = best(row, row.area_full)
        trimmed = best(row, row.area_trimmed)
        faster = speed(trimmed, row.demand / (1 + row.slower)) / speed(full, row.demand)
        gains[row.name] = round(faster / (1 + row.slower), 3)
    return gains


def simulate_gain(application: Application, step: Step) -> dict[str, Any]:
    """:func:`vip.trimming.filling.fit_application` for :data:`DEVICE` as plain JSON data,
    computed now or cached as long as no dependency changes; ``step`` and errors as there."""
    key = fingerprint(made_from(), *(job_key(job) for job in application.jobs))

    def make() -> dict[str, object]:
        return fit_json(fit_application(application, find_device(DEVICE), step))

    return dict(ResultCache("trim_fits").get(key, make))
