"""Kernels on one vault: cycles, bandwidth, utilisation of engines, and their roofline.

Each is the work of one vault of 32 (:mod:`sim_tb.workloads.tiles`) with real DRAM timing. Data are
random; every output is compared with the golden model's. Convolutions repeat one round for every
group of filters of an engine; two rounds are run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hdl.ports import COLUMN_BYTES
from isa.timing import WORD_BYTES
from memory.timing import BURST_CLOCKS
from microkernels.bp.golden import coarse_problem
from sim_tb.cosim.machine import Timed
from sim_tb.workloads.tiles import (
    BELIEF,
    ESE,
    ITERATIONS,
    LAYERS,
    LSTM,
    belief_problem,
    kernel_jobs,
)
from soc.generate.presets import tile_preset
from soc.tile.config import VaultTileConfig
from support.picture import COLOURS, MARKERS, picture
from vip.cli.commands.option_groups.machine import TimedOption

from .harness.experiment import (
    SIMULATION,
    Measurement,
    NamesOption,
    PictureOption,
    chosen,
    experiment,
    say,
)
from .harness.runs import LaunchRun, launch_runs, together

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TILE = "vault"
#: Batches of the thesis's Table 7.3.
BATCHES = (1, 3)
#: All kernels.
NAMES = (*BELIEF, *LAYERS, LSTM)


def _batches(name: str) -> tuple[int, ...]:
    return (ESE.batch,) if name == LSTM else BATCHES if name in LAYERS else BATCHES[:1]


def _belief_work(name: str) -> tuple[int, int]:
    """Operations and message updates of one of :data:`BELIEF`.

    An update has three additions and a subtraction for each label of a message, and an addition and
    a comparison for each pair of labels; construct three additions for each label of a block.
    """
    problem = belief_problem(name)
    run = problem if name == "bp_m" else coarse_problem(problem)
    if name == "bp_construct":
        # The vault has a quarter of the blocks.
        return 3 * run.data_costs.size // 4, 0
    updates = ITERATIONS.get(name, 0) * run.updates
    return updates * (4 * problem.labels + 2 * problem.labels**2), updates


def run_kernel(name: str, batch: int, config: VaultTileConfig, on: Timed) -> LaunchRun:
    """Run one of :data:`NAMES` on a vault; the engines of the LSTM have the optional instructions.

    Raises:
        CosimError: a kernel faulted, or an output differs from the golden model's.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    # A fully connected layer reads its weights once per batch; other layers run image by image.
    machine, jobs = kernel_jobs(name, config, batch=batch)
    operations, updates = sum(job.operations for job in jobs), 0
    if name in BELIEF:
        operations, updates = _belief_work(name)
    launches = [launch_runs(job, machine, name, on=on) for job in jobs]
    phase = BELIEF.get(name, "")
    run = together(runs[phase] if phase else next(iter(runs.values())) for runs in launches)
    moved = COLUMN_BYTES * (run.vaults["READS"] + run.vaults["WRITES"])
    gbs = moved / (run.cycles * run.tck_ns)
    return replace(run, gbs=gbs, operations=operations, updates=updates)


@experiment(presets=("vault", "vault-logistic"), tools=SIMULATION, minutes=30)
def kernels(
    only: NamesOption = None, on: TimedOption = "rtl", picture: PictureOption = None
) -> Iterator[Measurement]:
    """BP-M, layers of VGG-16 and an LSTM, a vault's part of each on a vault with DRAM timing.

    Every output is compared with the golden model's; finished kernels are cached. The picture is
    their roofline.

    Example: vip bench kernels --only conv5_1 --only fc8 --on model --json kernels.json
    """
    config = tile_preset(_TILE)
    runs = {}
    for name in chosen(only, NAMES):
        say(name)
        for batch in _batches(name):
            run = run_kernel(name, batch, config, on)
            runs[name + (f" x{batch}" if batch > 1 else "")] = run
            busy = run.counters["VECTOR_BUSY"] / (run.cycles * config.pes)
            key = f"{name}_batch_{batch}"
            yield Measurement(f"{key}_cycles", run.cycles, "cycles", 0.01)
            yield Measurement(f"{key}_gbs", run.gbs, "GB/s", 0.01, True)
            yield Measurement(f"{key}_busy", busy, "fraction", 0.01, True)
            if run.updates:
                rate = run.cycles * config.pes / run.updates
                yield Measurement(f"{key}_cycles_per_update", rate, "cycles", 0.01)
    if picture is not None:
        draw_roofline(runs, config, picture)


_ELEMENT_BYTES = 2
#: Stages of the vector unit that operate on each element (thesis, section 5.1).
_STAGES = 2
_INCHES = (12.0, 5.2)
#: Margin of the picture of all kernels beyond the extreme intensities, as a factor.
_MARGIN = 1.6
#: The second picture shows the knee: kernels with at least this share of its intensity.
_NEAR = 0.5
#: Pixels of the picture that a marker takes; points that are nearer share a text.
_MARK = 12.0
_NAME_POINTS = 7
#: Points of the roof that names keep away from.
_LINE_SAMPLES = 400
#: Beginning of kernels' names -> their kind.
_KINDS: Mapping[str, str] = {
    "bp": "belief propagation",
    "conv": "convolution",
    "pool": "pooling",
    "fc": "fully connected",
    "lstm": "LSTM",
}


def roof(config: VaultTileConfig) -> tuple[float, float]:
    """Limits of a vault: GB/s of its memory, and 10**9 operations per second on 16-bit elements,
    counting both stages of each engine's vector unit."""
    tck = config.dram.timing.tck_ns
    operations = config.pes * (WORD_BYTES // _ELEMENT_BYTES) * _STAGES
    return COLUMN_BYTES / (BURST_CLOCKS * tck), operations / tck


def draw_roofline(runs: Mapping[str, LaunchRun], config: VaultTileConfig, path: Path) -> None:
    """Write a picture (thesis Figure 7.1) with a point for each kernel that has operations:
    operations per second over operations per byte of memory.

    Parameters:
        runs: of :func:`run_kernel`, by name.
        config: of the vault on which they ran.
        path: file to write; replaced only when the picture is complete.

    Raises:
        OSError: the file can't be written.
    """
    # Images of a convolution's batch are the same run.
    places = {(run.intensity, run.gops): name for name, run in runs.items() if run.gops and run.gbs}
    points = {name: place for place, name in places.items()}
    bandwidth, peak = roof(config)
    knee = peak / bandwidth
    reached = [knee, *(intensity for intensity, _ in points.values())]
    edge = np.array([min(reached) / _MARGIN, knee, max(reached) * _MARGIN])
    with picture(*_INCHES, path) as drawing:
        from matplotlib.ticker import LogLocator, NullFormatter

        overview, near = drawing.subplots(1, 2)
        for axis in (overview, near):
            axis.plot(
                edge, np.minimum(edge * bandwidth, peak), color="black", label="limit of the vault"
            )
            for number, (start, label) in enumerate(_KINDS.items()):
                part = [place for name, place in points.items() if name.startswith(start)]
                if part:
                    axis.plot(
                        [intensity for intensity, _ in part],
                        [gops for _, gops in part],
                        MARKERS[number],
                        color=COLOURS[number],
                        label=label,
                    )
            axis.set(
                xlabel="operations for each byte of memory",
                ylabel="10$^9$ operations per second per vault",
            )
            axis.grid(which="both")
        overview.set(xscale="log", yscale="log", xlim=edge[[0, -1]], title="Kernels on one vault")
        for ticks in (overview.xaxis, overview.yaxis):
            ticks.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ticks.set_major_formatter("{x:g}")
            ticks.set_minor_formatter(NullFormatter())
        near.set(
            xlim=(_NEAR * knee, 1.15 * max(reached)),
            ylim=(_NEAR * peak, 1.05 * peak),
            title=f"near the knee: {bandwidth:.0f} GB/s and {peak:.0f} Gop/s",
        )
        overview.legend(loc="lower right")
        # The frames get their size before names are placed in them.
        drawing.draw_without_rendering()
        limits = (bandwidth, peak)
        near_knee = {name: one for name, one in points.items() if one[0] >= _NEAR * knee}
        far = {name: one for name, one in points.items() if name not in near_knee}
        _write_names(overview, far, points, limits)
        _write_names(near, near_knee, points, limits)


#: Left, bottom, right and top, in pixels.
_Box = tuple[float, float, float, float]


def _write_names(
    axis: "Axes",
    points: Mapping[str, tuple[float, float]],
    avoid: Mapping[str, tuple[float, float]],
    limits: tuple[float, float],
) -> None:
    """Write the names of ``points`` (intensity and 10**9 operations per second) beside them, clear
    of other names, of points in ``avoid`` and of the roof (see :func:`roof`); points that coincide
    share one text."""
    pixels = axis.transData
    groups: dict[tuple[float, float], list[str]] = {}
    for name in sorted(points):
        at = pixels.transform(points[name])
        close = (one for one in groups if np.abs(pixels.transform(one) - at).max() < _MARK)
        groups.setdefault(next(close, points[name]), []).append(name)
    line = np.geomspace(*axis.get_xlim(), _LINE_SAMPLES)
    roofs = np.stack([line, np.minimum(line * limits[0], limits[1])], axis=1)
    covered = [
        (x - size / 2, y - size / 2, x + size / 2, y + size / 2)
        for places, size in ((list(avoid.values()), _MARK), (roofs, 1.0))
        for x, y in pixels.transform(places)
    ]
    for point, names in groups.items():
        text = axis.annotate(
            ", ".join(names),
            point,
            (0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=_NAME_POINTS,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4},
        )
        extent = text.get_window_extent()
        places = [
            (side * (extent.width / 2 + _MARK), lift * extent.height)
            for lift in (0, 1, -1, 2, -2, 3, -3, 4, -4)
            for side in (1, -1, 0)
            if side or lift
        ]
        boxes = {place: extent.translated(*place).extents for place in places}
        right, up = min(places, key=lambda place: _clash(boxes[place], covered, axis.bbox.extents))
        covered.append(boxes[right, up])
        text.set_position((right * 72 / axis.figure.dpi, up * 72 / axis.figure.dpi))
        # A line joins a name to its point only if they are apart.
        assert text.arrow_patch is not None
        text.arrow_patch.set_visible(abs(up) > extent.height)


def _clash(box: _Box, covered: Sequence[_Box], frame: _Box) -> float:
    """Cost of the parts of ``box`` that cover covered places or lie outside of the frame."""
    return _shared(box, covered) + 1000 * (_shared(box, [box]) - _shared(box, [frame]))


def _shared(box: _Box, boxes: Sequence[_Box]) -> float:
    """The area of ``box`` that each of ``boxes`` covers, summed."""
    one, many = np.array(box), np.array(boxes)
    sides = np.minimum(one[2:], many[:, 2:]) - np.maximum(one[:2], many[:, :2])
    return float(sides.clip(0).prod(axis=1).sum())
