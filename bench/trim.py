"""Engines trimmed to applications, proofs of them, and devices filled with them."""

import os
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from time import monotonic
from unittest.mock import patch

from sim_tb.cosim.applications import choose
from sim_tb.cosim.engine import CosimError
from vip.cli.commands.options import JobsOption, SchedulerOption
from vip.proofs import prove
from vip.trimming.figure import draw_trims
from vip.trimming.filling import estimate_gains, simulate_gain
from vip.trimming.rows import means
from vip.trimming.suite import measure_trims

from .harness.experiment import (
    CELLS,
    SIMULATION,
    SYNTHESIS,
    BenchError,
    Measurement,
    NamesOption,
    PictureOption,
    experiment,
    figure,
    say,
    say_stage,
)

_MEASURES = ("luts", "ffs", "dsps", "brams")


@experiment(presets=("pe", "pe-logistic"), tools=(*SYNTHESIS, *SIMULATION[1:]), minutes=60)
def fit(only: NamesOption = None) -> Iterator[Measurement]:
    """SCRATCH's device filled with full engines, and with engines trimmed to each application.

    Sizes are proved for every input. All engines run the application; the logic around them is the
    same. Finished chips are cached.

    Example: vip bench fit --only max-pooling
    """
    for application in choose(tuple(only or ())):
        chips = simulate_gain(application, say)
        name = figure(application.name)
        if not chips["match"]:
            raise CosimError(f"{application.name}: engines of a chip leave different results")
        gain, on_board = chips["throughput_gain"], chips["board_throughput_gain"]
        yield Measurement(f"{name}_proved_gain", gain, "", 0.01, True)
        yield Measurement(f"{name}_proved_board_gain", on_board, "", 0.01, True)
        for kind, chip in (("reference", chips["full"]), ("proved", chips["trimmed"])):
            luts = chip["area"]["total"]["luts"]
            used = chip["filled"]["luts"]
            yield Measurement(f"{name}_{kind}_engines", chip["engines"], "", 0.0, True)
            yield Measurement(f"{name}_{kind}_vaults", chip["vaults"], "", None)
            yield Measurement(f"{name}_{kind}_luts", luts, "", 0.02)
            yield Measurement(f"{name}_{kind}_luts_used", used, "fraction", 0.02)
            rams = chip["filled"]["brams"]
            yield Measurement(f"{name}_{kind}_brams_used", rams, "fraction", 0.02)
            yield Measurement(f"{name}_{kind}_cycles", chip["host_cycles"], "cycles", 0.01)
            speed, buses = chip["gigabytes_per_second"], chip["bus_gigabytes_per_second"]
            yield Measurement(f"{name}_{kind}_gb_s", speed, "GB/s", 0.02)
            yield Measurement(f"{name}_{kind}_bus_gb_s", buses, "GB/s", 0.02)


@experiment(presets=("pe", "pe-logistic"), tools=(*CELLS, *SIMULATION[1:]), minutes=130)
def trim(
    only: NamesOption = None,
    picture: PictureOption = None,
    scheduler: SchedulerOption = None,
    jobs: JobsOption = None,
) -> Iterator[Measurement]:
    """Engines trimmed to each application, and to unions of some: area, power, cycles and results.

    Fractions saved on Xilinx 7-series, and their means over the applications. Sizes are proved for
    every input. Transfers in flight are the fewest with which the application takes at most 1 %
    more cycles. Neither the trimmed nor the full engine has performance counters. Finished rows are
    cached, so an interrupted command resumes. The picture shows the savings and the estimated
    throughput of a full device.

    Example: vip bench trim --only bp --only k-means --json trim.json
    """
    rows = measure_trims(tuple(only or ()), scheduler=scheduler, jobs=jobs, progress=say_stage)
    if picture is not None:
        draw_trims(rows, estimate_gains(rows, say), picture)
    for row in rows:
        if not (row.match and row.exact):
            raise CosimError(f"{row.name}: a trimmed engine does not do what the full one does")
        name = row.name.replace(" ", "_").replace("-", "_")
        for measure in _MEASURES:
            yield Measurement(f"{name}_full_{measure}", row.area_full[measure], measure, 0.02)
        yield Measurement(f"{name}_full_mw", row.power_full["mw"], "mW", 0.02)
        yield Measurement(f"{name}_cycles", row.cycles_full, "cycles", 0.01)
        stem = f"{name}_proved"
        slower = round(row.slower, 5)
        yield Measurement(f"{stem}_cycles", row.cycles_trimmed, "cycles", 0.01)
        yield Measurement(f"{stem}_slower", slower, "fraction", None)
        for measure in _MEASURES:
            yield Measurement(f"{stem}_{measure}", row.area_trimmed[measure], measure, 0.02)
            saved = row.saved(measure)
            yield Measurement(f"{stem}_saved_{measure}", saved, "fraction", 0.02, True)
        power = row.power_saved
        if power is not None:
            yield Measurement(f"{stem}_mw", row.power_trimmed["mw"], "mW", 0.02)
            yield Measurement(f"{stem}_saved_mw", power, "fraction", 0.02, True)
    for name, mean in means(rows).items():
        yield Measurement(f"proved_{name}", mean, "fraction", 0.02, True)


@experiment(presets=("pe",), tools=SYNTHESIS, minutes=12)
def proofs() -> Iterator[Measurement]:
    """Conditions of each proof that ``vip prove`` makes of the suite, and its seconds.

    Beside the others, one a processor; then the seconds of all. No result is cached before.
    """
    with TemporaryDirectory() as folder, patch.dict(os.environ, VIP_BUILD_DIR=folder):
        before = monotonic()
        report = prove(progress=say_stage)
        seconds = monotonic() - before
    for name, proof in report.proofs.items():
        if not proof.holds:
            raise BenchError(f"{name}: the proof fails; vip prove {name} says where")
        key = figure(name)
        yield Measurement(f"{key}_conditions", proof.goals, "conditions", 0.0, True)
        yield Measurement(f"{key}_seconds", proof.seconds, "s", None)
    yield Measurement("minutes", seconds / 60, "min", None)
