"""Benchmarks of trimming."""

from collections.abc import Iterator

import sim_tb.cosim.trim_check
import sim_tb.harness.readout
import synth.analysis.bounds
import synth.analysis.contents
import synth.analysis.effects
import synth.analysis.needs
import synth.analysis.trim
import synth.analysis.values
import synth.physical.budget
import synth.physical.chip_area
import synth.physical.comparison
import synth.physical.fit
import synth.power.power
import vip.trimming.comparison
import vip.trimming.filling
import vip.trimming.gain
import vip.trimming.rows
import vip.trimming.runs
import vip.trimming.subjects
from sim_tb.cosim.applications import applications
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import job_key
from soc.generate.presets import chip_preset, preset
from synth.physical.targets import find_target
from vip.trimming.gain import simulate_gain
from vip.trimming.rows import means
from vip.trimming.suite import measure_trims

from . import fingerprints
from .measurement import Measurement
from .terminal import say

__all__ = ["fitting", "made_of_fitting", "made_of_trimming", "trimming"]

_MEASURES = ("luts", "ffs", "dsps", "brams")


def fitting() -> Iterator[Measurement]:
    """SCRATCH's device filled with full engines, and with engines trimmed to each application of
    the suite by proof. All of them run the application; the logic around the engines is the same.
    Finished chips are cached."""
    for application in applications():
        found = simulate_gain(application, say)
        name = application.name.replace("-", "_")
        if not found["match"]:
            raise CosimError(f"{application.name}: engines of a chip leave other results")
        gain, on_board = found["throughput_gain"], found["board_throughput_gain"]
        yield Measurement(f"{name}_proved_gain", gain, "", 0.01, True)
        yield Measurement(f"{name}_proved_board_gain", on_board, "", 0.01, True)
        for kind, chip in (("reference", found["full"]), ("proved", found["trimmed"])):
            luts = chip["area"]["total"]["luts"]
            used = chip["filled"]["luts"]
            yield Measurement(f"{name}_{kind}_engines", chip["engines"], "", 0.0, True)
            yield Measurement(f"{name}_{kind}_vaults", chip["vaults"], "", None)
            yield Measurement(f"{name}_{kind}_luts", luts, "", 0.02)
            yield Measurement(f"{name}_{kind}_luts_used", used, "fraction", 0.02)
            rams = chip["filled"]["brams"]
            yield Measurement(f"{name}_{kind}_brams_used", rams, "fraction", 0.02)
            yield Measurement(f"{name}_{kind}_cycles", chip["cycles"], "cycles", 0.01)
            speed, buses = chip["gigabytes_per_second"], chip["bus_gigabytes_per_second"]
            yield Measurement(f"{name}_{kind}_gb_s", speed, "GB/s", 0.02)
            yield Measurement(f"{name}_{kind}_bus_gb_s", buses, "GB/s", 0.02)


def _made_of_trimmed() -> dict[str, str]:
    return {
        **fingerprints.mapped("pe", preset("pe")),
        **fingerprints.engine("pe", preset("pe")),
        **fingerprints.mapped("pe-logistic", preset("pe-logistic")),
        "mapping for 7-series": fingerprints.mapping(find_target("xc7")),
        "analysis of programs": fingerprints.code(
            sim_tb.cosim.trim_check,
            sim_tb.harness.readout,
            synth.analysis.trim,
            synth.physical.comparison,
            synth.analysis.values,
            synth.analysis.contents,
            synth.analysis.needs,
            synth.analysis.bounds,
            synth.analysis.effects,
            synth.analysis.needs,
            vip.trimming.runs,
            vip.trimming.subjects,
        ),
    }


def made_of_fitting() -> dict[str, str]:
    """The engines, their mappings, the code that trims and fills, and the applications."""
    jobs = [job for application in applications() for job in application.jobs]
    return {
        **_made_of_trimmed(),
        "how a device is filled": fingerprints.code(
            synth.physical.fit,
            synth.physical.budget,
            synth.physical.chip_area,
            vip.trimming.filling,
            vip.trimming.gain,
        ),
        "Verilog of fpga": fingerprints.hardware(chip_preset("fpga")),
        "applications": fingerprints.data(*map(job_key, jobs)),
    }


def _told(stage: str, done: float = 0, total: float | None = None, part: str = "") -> None:
    say(f"{stage}: {done:g} of {total:g}, {part}" if part and total else stage)


def trimming() -> Iterator[Measurement]:
    """Engines trimmed to each application of the suite, and to unions of some, for 7-series:
    fractions saved, and their means over the applications. Sizes are proved for every input, and at
    most 1 % more cycles are allowed. No engine has performance counters; finished rows are
    cached."""
    rows = measure_trims(progress=_told)
    for row in rows:
        if not (row.match and row.trimmed.exact):
            raise CosimError(f"{row.name}: a trimmed engine does not do what the full one does")
        name = row.name.replace(" ", "_").replace("-", "_")
        for measure in _MEASURES:
            yield Measurement(f"{name}_full_{measure}", row.area_full[measure], measure, 0.02)
        yield Measurement(f"{name}_full_mw", row.power_full["mw"], "mW", 0.02)
        yield Measurement(f"{name}_cycles", row.cycles_full, "cycles", 0.01)
        engine, stem = row.trimmed, f"{name}_proved"
        slower = round(row.slower, 5)
        yield Measurement(f"{stem}_cycles", engine.cycles, "cycles", 0.01)
        yield Measurement(f"{stem}_slower", slower, "fraction", None)
        for measure in _MEASURES:
            yield Measurement(f"{stem}_{measure}", engine.area[measure], measure, 0.02)
            saved = row.saved(measure)
            yield Measurement(f"{stem}_saved_{measure}", saved, "fraction", 0.02, True)
        power = row.power_saved
        if power is not None:
            yield Measurement(f"{stem}_mw", engine.power["mw"], "mW", 0.02)
            yield Measurement(f"{stem}_saved_mw", power, "fraction", 0.02, True)
    for name, mean in means(rows).items():
        yield Measurement(f"proved_{name}", mean, "fraction", 0.02, True)


def made_of_trimming() -> dict[str, str]:
    """The engines, their mappings, the code that trims and measures, and the applications."""
    jobs = [job for application in applications() for job in application.jobs]
    return {
        **_made_of_trimmed(),
        "mapping to standard cells": fingerprints.mapping(find_target(vip.trimming.rows.CELLS)),
        "model of power": fingerprints.code(synth.power.power),
        "what is compared": fingerprints.code(vip.trimming.comparison, vip.trimming.rows),
        "applications": fingerprints.data(*map(job_key, jobs)),
    }
