"""Benchmarks of trimming."""

from collections.abc import Iterator

import synth.bounds
import synth.budget
import synth.chip_area
import synth.effects
import synth.fit
import synth.needs
import synth.power
import synth.reach
import synth.trim
import synth.values
import vip.fitting
import vip.trim_bench
import vip.trim_gain
import vip.trim_rows
from sim_tb.applications import applications, choose
from sim_tb.cosim import CosimError
from sim_tb.nn_cosim import job_key
from soc.presets import chip_preset, preset
from synth.budget import find_budget
from synth.targets import find_target
from vip.fitting import fit_application
from vip.trim_bench import measure_trims
from vip.trim_gain import estimate_gains
from vip.trim_rows import means

from . import fingerprints
from .measurement import Measurement

__all__ = ["fitting", "made_of_fitting", "made_of_trimming", "trimming"]

#: Applications that a device is filled for.
_FITTED = ("matrix-addition",)
_DEVICE = "xc7vx690t"


def fitting() -> Iterator[Measurement]:
    """SCRATCH's device filled with full engines and with ones trimmed to an application, which all
    of them run."""
    budget = find_budget(_DEVICE)
    for application in choose(_FITTED):
        found = fit_application(application, budget, lambda step: None)
        if not found.match:
            raise CosimError(f"{application.name}: engines of a chip leave other results")
        name = application.name.replace("-", "_")
        for kind, chip, copies in (
            ("full", found.full, found.copies_full),
            ("trimmed", found.trimmed, found.copies_trimmed),
        ):
            grid = chip.grid
            luts = chip.area.total.values["luts"]
            yield Measurement(f"{name}_{kind}_engines", grid.total, "", 0.0, True)
            yield Measurement(f"{name}_{kind}_vaults", grid.vaults, "", None)
            yield Measurement(f"{name}_{kind}_luts", luts, "", 0.02)
            yield Measurement(f"{name}_{kind}_cycles", copies.cycles, "cycles", 0.01)
        yield Measurement(f"{name}_gain", round(found.gain, 3), "", 0.01, True)


def _made_of_trimmed() -> dict[str, str]:
    return {
        **fingerprints.mapped("pe", preset("pe")),
        **fingerprints.engine("pe", preset("pe")),
        "mapping for 7-series": fingerprints.mapping(find_target("xc7")),
        "analysis of programs": fingerprints.code(
            synth.trim, synth.values, synth.needs, synth.bounds, synth.effects, synth.reach
        ),
    }


def made_of_fitting() -> dict[str, str]:
    """The engine, its mapping, what trims it, what fills a device, and the application."""
    jobs = [job for application in choose(_FITTED) for job in application.jobs]
    return {
        **_made_of_trimmed(),
        "how a device is filled": fingerprints.code(
            synth.fit, synth.budget, synth.chip_area, vip.fitting
        ),
        "Verilog of fpga": fingerprints.hardware(chip_preset("fpga")),
        "applications": fingerprints.data(*map(job_key, jobs)),
    }


def trimming() -> Iterator[Measurement]:
    """Engines trimmed to each application of the suite, and to unions of some, for 7-series:
    fractions saved, and their means over the applications. Takes an hour of a processor."""
    rows = measure_trims()
    gains = estimate_gains(rows, lambda step: None)
    for row in rows:
        if not (row.match and row.exact):
            raise CosimError(f"{row.name}: the trimmed engine does not do what the full one does")
        name = row.name.replace(" ", "_").replace("-", "_")
        for measure in ("luts", "ffs", "dsps", "brams"):
            saved = row.saved(measure)
            yield Measurement(f"{name}_{measure}_full", row.area_full[measure], measure, 0.02)
            left = row.area_trimmed[measure]
            yield Measurement(f"{name}_{measure}_trimmed", left, measure, 0.02)
            yield Measurement(f"{name}_saved_{measure}", saved, "fraction", 0.02, True)
        yield Measurement(f"{name}_mw_full", row.power_full["mw"], "mW", 0.02)
        yield Measurement(f"{name}_mw_trimmed", row.power_trimmed["mw"], "mW", 0.02)
        yield Measurement(f"{name}_saved_mw", row.power_saved or 0.0, "fraction", 0.02, True)
        yield Measurement(f"{name}_cycles", row.cycles_trimmed, "cycles", 0.01)
        gain = gains[row.name]
        yield Measurement(f"{name}_engines_full", gain.engines_full, "", 0.05, True)
        yield Measurement(f"{name}_engines_trimmed", gain.engines_trimmed, "", 0.05, True)
        yield Measurement(f"{name}_estimated_gain", gain.throughput_gain, "", 0.05, True)
    for name, mean in means(rows).items():
        yield Measurement(name, mean, "fraction", 0.02, True)


def made_of_trimming() -> dict[str, str]:
    """The engines, their mappings, what trims them and measures, and the applications."""
    jobs = [job for application in applications() for job in application.jobs]
    return {
        **_made_of_trimmed(),
        **fingerprints.mapped("pe-logistic", preset("pe-logistic")),
        "mapping to standard cells": fingerprints.mapping(find_target(vip.trim_rows.CELLS)),
        "model of power": fingerprints.code(synth.power),
        "what is compared": fingerprints.code(vip.trim_bench, vip.trim_gain, vip.trim_rows),
        "applications": fingerprints.data(*map(job_key, jobs)),
    }
