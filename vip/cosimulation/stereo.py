"""The verb ``cosim_bp``: depth from stereo by belief propagation on Verilog."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hdl.ports import COLUMN_BYTES
from isa.run import RunResult
from memory.timing import BURST_CLOCKS
from microkernels.bp.golden import labels as best_labels
from microkernels.bp.golden import percent_wrong
from microkernels.bp.tiles import fastest_cut
from microkernels.data.stereo import (
    StereoError,
    StereoScene,
    draw,
    motorcycle,
)
from microkernels.runtime.job import KernelOutcome
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.kernels import bp_job_on, run_on
from sim_tb.cosim.machine import On
from soc.generate.designs import Configuration
from soc.generate.presets import Design, configuration_json, design
from support.errors import Shown, counted
from support.picture import COLOURS, picture
from vip.progress import Progress, counting, silent

from .runs import netlist_of, with_waves

#: Width and height: of a demonstration, of the thesis's tile (6.1), and of an image that a
#: small chip processes in a minute.
_SIZES = {"engine": (64, 48), "vault": (60, 34), "chip": (32, 24)}
#: Approximate cycles per message per engine.
_CYCLES_PER_UPDATE = 81
_INCHES = (9.0, 3.4)


def draw_bandwidth(result: RunResult, path: Path, *, caption: str) -> None:
    """Write a picture: bandwidth of reads and writes over time, stacked, below its limit.

    Parameters:
        result: of a run.
        path: file to write; replaced only when the picture is complete.
        caption: title, to which bandwidth and row hits are added.

    Raises:
        OSError: the file can't be written.
    """
    length, gbs = result.bandwidth()
    edges = np.arange(gbs.shape[1] + 1) * length
    limit = COLUMN_BYTES / (BURST_CLOCKS * result.tck_ns)
    total = gbs.sum(axis=0)
    with picture(*_INCHES, path) as figure:
        axis = figure.subplots()
        axis.stairs(gbs[0], edges, fill=True, color=COLOURS[0], label="read")
        axis.stairs(total, edges, baseline=gbs[0], fill=True, color=COLOURS[1], label="written")
        axis.axhline(limit, color="black", linewidth=0.8, linestyle="--", label="limit of the bus")
        axis.set(
            xlim=(0, edges[-1]),
            ylim=(0, 1.2 * limit),
            xlabel=f"time in us (intervals of {length:.2f} us)",
            ylabel="GB/s",
            title=f"{caption}: mean {result.gbs:.2f} GB/s, {result.row_hits:.0%} row hits",
        )
        axis.legend(loc="upper right", ncols=3)


@dataclass(frozen=True, kw_only=True)
class BpRun(Shown):
    """Belief propagation on a machine, compared with the golden model.

    Attributes:
        config: of the hardware. on: as for :func:`cosim_bp`. scene: the problem.
        iterations: of BP-M.
        outcome: of an engine, of a vault, or of a chip.
        activity: of the engines over time; None: not recorded.
    """

    config: Configuration
    on: On
    scene: StereoScene
    iterations: int
    outcome: KernelOutcome
    activity: Mapping[str, object] | None = None

    @property
    def match(self) -> bool:
        """Whether every message equals the golden model's."""
        return self.outcome.match

    @property
    def labels(self) -> NDArray[np.int64]:
        """``[y, x]``: the label of each pixel."""
        return best_labels(self.scene.problem, self.outcome.outputs)

    def draw(self, path: Path) -> None:
        """Draw photograph, truth and disparities as PNG or SVG.

        Raises:
            VipError: the file can't be written.
        """
        caption = f"BP-M on {counted(self.outcome.pes, 'engine')}, {self.iterations} iterations"
        draw(self.scene, self.labels, path, caption=caption)

    def plot(self, path: Path) -> None:
        """Draw the bandwidth of a vault over time as PNG or SVG.

        Raises:
            StereoError: the run was not on a vault. OSError: the file can't be written.
        """
        result = self.outcome.result
        if not result.windows:
            raise StereoError("bandwidth over time is known only for a vault")
        draw_bandwidth(result, path, caption=f"BP-M on {self.outcome.pes} engines of a vault")

    def to_json(self) -> dict[str, object]:
        """The numbers of the run as plain JSON data."""
        outcome, problem = self.outcome, self.scene.problem
        report: dict[str, object] = {
            "machine": self.on,
            "match": outcome.match,
            "differing_elements": outcome.differing,
            "scene": self.scene.name,
            "width": problem.width,
            "height": problem.height,
            "labels": problem.labels,
            "pes": outcome.pes,
            "updates": outcome.updates,
            "cycles_per_update": round(outcome.cycles_per_update, 3),
            "saturated": outcome.job.saturated,
            **self._numbers(),
        }
        if self.activity is not None:
            report["activity"] = self.activity
        if self.scene.truth is not None:
            report["percent_wrong"] = round(percent_wrong(self.labels, self.scene.truth), 2)
        return report

    def _numbers(self) -> dict[str, object]:
        configuration = configuration_json(self.config)
        numbers = {**self.outcome.result.numbers(), "configuration": configuration}
        if self.config.kind == "engine":
            return {**numbers, "counters": self.outcome.result.engine.counters}
        if self.config.kind == "chip":
            numbers["remote_byte_share"] = round(self.outcome.job.remote_bytes, 6)
        return numbers


def stereo_pair(
    *,
    config: Design = "pe",
    width: int | None = None,
    height: int | None = None,
    labels: int = 16,
) -> StereoScene:
    """The stereo problem of the Motorcycle pair; that of other photographs is
    :func:`vip.mrf.run.mrf_stereo`'s.

    Parameters:
        config: of the hardware that solves it, for the default size.
        width, height: of the grid in pixels, possibly larger than the photographs
            (:func:`microkernels.data.stereo.stereo_scene`); None: a size that ``config`` solves in
            a minute.
        labels: levels of disparity, at least 2.

    Raises:
        VipError: invalid sizes, or a missing extra.
    """
    size = _SIZES[design(config).kind]
    return motorcycle(
        size[0] if width is None else width, size[1] if height is None else height, labels
    )


def cosim_bp(
    config: Design = "pe",
    scene: StereoScene | None = None,
    *,
    iterations: int = 5,
    on: On = "rtl",
    target: str | None = None,
    behaviour: MemoryBehaviour | None = None,
    pes: int | None = None,
    preload: bool | None = None,
    outer: bool = False,
    trace: Path | None = None,
    pipeline: Path | None = None,
    progress: Progress = silent,
) -> BpRun:
    """Depth from stereo by belief propagation (BP-M), checked against the golden model.

    ``cosim_bp("vault", iterations=1).match`` runs it on four engines that share a vault. On a chip
    all engines share the grid, and the host writes and reads through the AXI ports.

    Parameters:
        config: of an engine, a vault or a chip.
        scene: the problem (:func:`stereo_pair`); None: the Motorcycle pair at a small size.
        iterations: of BP-M, at least 1.
        on, target: as for :func:`vip.cosimulation.program.cosim`.
        behaviour: of the memory beside one engine; None: the default. Vaults and chips have their
            own.
        pes: number of engines of a vault to use; None: all.
        preload: write a chip's problem to its DRAM directly, and read the messages likewise, not
            through the AXI port; None: only on the timing model.
        outer: let cocotbext-axi's masters drive a chip's buses.
        trace, pipeline: as for :func:`vip.cosimulation.program.cosim`.
        progress: called with the cycles so far.

    Raises:
        VipError: a problem that does not fit, a run that faults or does not end, or a simulator
            that can't be built.
    """
    chosen = design(config)
    if scene is None:
        scene = stereo_pair(config=chosen)
    problem = scene.problem
    cut = fastest_cut(problem.width, problem.height, vaults=chosen.vaults, pes=chosen.slots)
    job = bp_job_on(problem, iterations, chosen, pes=pes, cut=cut)
    cycles = _CYCLES_PER_UPDATE * problem.updates * iterations / (job.pes * job.vaults)
    preload = on != "rtl" if preload is None else preload
    chosen, netlist = netlist_of(chosen, on, target, progress, trace=pipeline or trace)

    run = partial(run_on, job, memory=behaviour, preload=preload)

    def rehearse(model: Configuration) -> Iterable[RunResult]:
        return run(model, on="model").results.values()

    counts = counting(progress, "cosimulation (cycles)", cycles)
    outcome, activity = with_waves(
        lambda wave: run(chosen, on=on, outer=outer, trace=wave, netlist=netlist, progress=counts),
        job.program,
        chosen,
        on,
        trace=trace,
        pipeline=pipeline,
        rehearse=rehearse,
    )
    return BpRun(
        config=chosen,
        on=on,
        scene=scene,
        iterations=iterations,
        outcome=outcome,
        activity=activity,
    )
