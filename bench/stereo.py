"""Disparities of the Motorcycle pair by hierarchical BP-M, and their error."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import typer

from microkernels.bp.golden import labels, percent_wrong
from microkernels.bp.jobs import bp_levels_job
from microkernels.data.stereo import draw, motorcycle
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.kernels import run_on
from sim_tb.runner.build import need_simulator
from soc.generate.presets import tile_preset

from .harness.experiment import SIMULATION, BenchError, Measurement, PictureOption, experiment
from .harness.runs import exact

_TILE = "vault"
#: Width and height of the grid on Verilog, and of the whole photograph.
_GRID, _EVERY_PIXEL = (370, 250), (741, 500)


@experiment(presets=("vault",), tools=SIMULATION, minutes=15)
def stereo(
    width: Annotated[
        int | None, typer.Option(help="Columns of another grid; the pair has 741.", min=1)
    ] = None,
    height: Annotated[int, typer.Option(help="Rows of that grid; the pair has 500.", min=1)] = 250,
    count: Annotated[
        int, typer.Option("--labels", help="Labels, each a range of disparities.", min=2)
    ] = 16,
    coarse: Annotated[
        int, typer.Option(help="Iterations at a quarter of the size.", min=0, max=1000)
    ] = 5,
    iterations: Annotated[int, typer.Option(help="Iterations at full size.", min=0, max=1000)] = 1,
    verilog: Annotated[
        bool, typer.Option("--verilog", help="Also run a vault's Verilog: minutes or more.")
    ] = False,
    picture: PictureOption = None,
) -> Iterator[Measurement]:
    """Hierarchical BP-M on the Motorcycle pair: disparities, and their error.

    On a vault's Verilog at 370 x 250 pixels, with the cycles of each phase, and on the golden model
    with every pixel; with --width, on that grid only. Pixels are wrong if they are off by more than
    one label. The picture shows the photograph, the ground truth and the first result.

    Example: vip bench stereo --width 96 --height 64 --picture stereo.png
    """
    if width is None and height != _GRID[1]:
        raise BenchError("--height needs --width")
    if width is not None:
        grid = (width, height, count)
        yield from _measure(grid, coarse, iterations, verilog=verilog, picture=picture)
        return
    yield from _measure((*_GRID, count), coarse, iterations, verilog=True, picture=picture)
    for number in (1, 5):
        yield from _measure((*_EVERY_PIXEL, count), coarse, number, verilog=False)


def _measure(
    grid: tuple[int, int, int],
    coarse: int,
    iterations: int,
    *,
    verilog: bool,
    picture: PictureOption = None,
) -> Iterator[Measurement]:
    """One grid on the golden model and, with ``verilog``, on Verilog, whose messages must equal."""
    if verilog:
        need_simulator()
    scene, config = motorcycle(*grid), tile_preset(_TILE)
    job = bp_levels_job(
        scene.problem,
        coarse,
        iterations,
        engines=ChipEngines(
            address_bits=config.vault.address_bits,
            pes=config.pes,
            scratchpad_bytes=config.pe.scratchpad_bytes,
        ),
    )
    if verilog:
        phases = exact(run_on(job, config), "the vault").results
        for name, result in phases.items():
            yield Measurement(f"cycles_{name}", result.elapsed_cycles, "cycles", 0.01)
        cycles = sum(result.elapsed_cycles for result in phases.values())
        yield Measurement("cycles", cycles, "cycles", 0.01)
    chosen = labels(scene.problem, job.expected)
    truth = np.full(chosen.shape, -1) if scene.truth is None else scene.truth
    wrong = percent_wrong(chosen, truth)
    errors = np.abs(scene.disparities[chosen] - scene.disparities[truth])[truth >= 0]
    key = f"{grid[0]}x{grid[1]}_{coarse}_{iterations}"
    yield Measurement(f"{key}_wrong", round(wrong, 2), "%", 0.001)
    yield Measurement(f"{key}_mean_error", round(float(errors.mean()), 2), "pixels", 0.001)
    if picture is not None:
        machine = "Verilog" if verilog else "golden model"
        draw(scene, chosen, picture, caption=f"{machine}, {coarse} + {iterations} iterations")
