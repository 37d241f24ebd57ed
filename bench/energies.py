"""How fast energies fall, on one level and on two, and how far a coarse level is from the end."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from microkernels.bp.golden import coarse_problem, copied, energy, iterate, labels
from microkernels.bp.problem import BpProblem, Messages
from microkernels.bp.smoothness import smoothness_costs
from microkernels.bp.trws.golden import FRACTION, iterated
from microkernels.data.stereo import MADE, made_scene, motorcycle
from microkernels.mrf.matching import matching_costs
from microkernels.mrf.pair import edge_weights
from microkernels.suite import suite
from support.picture import MARKERS, picture
from synth.analysis.histogram import draw_needs
from synth.analysis.needs import needed, union
from vip.mrf.options import Method, MrfOptions
from vip.mrf.result import MrfRun
from vip.mrf.run import solve_mrf

from .harness.experiment import (
    AMARANTH,
    BenchError,
    Measurement,
    PictureOption,
    experiment,
    figure,
    say,
)

#: Iterations on the coarse level, as in the thesis, and most iterations on the fine level.
_COARSE, _FLAT, _LEVELS = 5, 10, 7
#: Iterations on one level whose energy two levels should reach (thesis 7.2.1).
_REFERENCE = 8
_INCHES = (7.5, 4.0)
_CYCLES_A_MS = 1.25e6
_NAMES: dict[Method, str] = {
    "bp": "BP-M",
    "hbp": "hierarchical BP-M",
    "trws": "TRW-S",
    "htrws": "hierarchical TRW-S",
}
#: Launches of hierarchical methods.
_LAUNCHES = ("construct", "coarse", "copy", "fine")
#: Launch that chooses the labels of BP-M.
_LABELS = "labels"

_Columns = Annotated[int, typer.Option(help="Columns of the Motorcycle pair's grid.", min=2)]
_Rows = Annotated[int, typer.Option(help="Its rows.", min=2)]


def _energies(problem: BpProblem, messages: Messages, iterations: int) -> list[int]:
    """Energies of the labels before the first iteration and after each."""
    energies = [energy(problem, labels(problem, messages))]
    for _ in range(iterations):
        messages = iterate(problem, 1, messages)
        energies.append(energy(problem, labels(problem, messages)))
    return energies


@experiment(tools=("numpy",), minutes=3)
def bp_energies(
    width: _Columns = 741, height: _Rows = 500, picture: PictureOption = None
) -> Iterator[Measurement]:
    """How fast BP-M's energy falls, on one level and on two.

    Thesis 7.2.1: five iterations of hierarchical BP-M reach the energy of eight of BP-M. Computed
    by the golden models, which equal the machine's messages bit for bit.

    Example: vip bench bp_energies --width 370 --height 250 --picture energies.png
    """
    problem = motorcycle(width, height, 16).problem
    say(f"{_FLAT} iterations of {width} x {height} pixels")
    flat = _energies(problem, problem.no_messages(), _FLAT)
    say(f"{_COARSE} coarse iterations, {_LEVELS} more")
    begin = copied(problem, iterate(coarse_problem(problem), _COARSE))
    levels = _energies(problem, begin, _LEVELS)
    for name, energies in (("flat", flat), ("levels", levels)):
        for count, value in enumerate(energies):
            yield Measurement(f"{name}_{count}", value, "")
    reached = [count for count, value in enumerate(levels) if value <= flat[_REFERENCE]]
    if reached:
        yield Measurement(f"levels_reach_flat_{_REFERENCE}", reached[0], "iterations")
    if picture is not None:
        _draw_levels(flat, levels, f"Motorcycle, {width} x {height} pixels, 16 labels", picture)


def _draw_levels(flat: list[int], levels: list[int], title: str, path: Path) -> None:
    reference = flat[_REFERENCE]
    with picture(*_INCHES, path) as drawing:
        axis = drawing.subplots()
        for energies, first, style, label in (
            (flat, 1, "o-", "BP-M"),
            (levels, 0, "s-", f"hierarchical BP-M, {_COARSE} iterations at a quarter of the size"),
        ):
            excess = 100 * (np.array(energies[first:]) / reference - 1)
            axis.plot(range(first, len(energies)), excess, style, label=label)
        axis.axhline(
            0, color="black", linewidth=0.8, linestyle="--", label=f"BP-M after {_REFERENCE}"
        )
        axis.set(
            xlabel="iterations at full size",
            ylabel=f"energy above that of BP-M after {_REFERENCE}, in %",
            ylim=(-1, 4 + 100 * (levels[1] / reference - 1)),
            title=title,
        )
        axis.grid()
        axis.legend()


def _line(
    problem: BpProblem, method: Method, iterations: int, coarse: int
) -> tuple[MrfRun, list[float]]:
    """The run of a method, with the cycles of one iteration, and the ms from the start to each of
    its energies."""
    options = MrfOptions(method=method, iterations=iterations, coarse_iterations=coarse)
    one = solve_mrf(problem, replace(options, config="vault", iterations=1, on="model"))
    if not one.match:
        raise BenchError(f"{_NAMES[method]}: messages differ from the golden model's")
    last = "fine" if options.hierarchical else ""
    before = sum(cycles for name, cycles in one.cycles.items() if name not in (last, _LABELS))
    ms = [(before + number * one.cycles[last]) / _CYCLES_A_MS for number in range(iterations + 1)]
    return replace(solve_mrf(problem, options), cycles=one.cycles), ms


@experiment(presets=("vault",), tools=AMARANTH, minutes=5)
def mrf_energies(
    width: _Columns = 370,
    height: _Rows = 250,
    iterations: Annotated[int, typer.Option(help="Iterations.", min=1)] = 10,
    coarse: Annotated[
        int,
        typer.Option(help="Iterations of hierarchical methods on a quarter of the size.", min=1),
    ] = 2,
    picture: PictureOption = None,
) -> Iterator[Measurement]:
    """Energies of BP-M and TRW-S, also hierarchical, over time.

    The timing model counts the cycles of four engines of a vault at 1.25 GHz for one iteration and
    compares every message with the golden model's. Further iterations do the same work; their
    energies come from the golden model. The time excludes the choice of labels: for BP-M the least
    beliefs, for TRW-S in raster order by the host. The lower bound is that of TRW-S after its last
    iteration.

    Example: vip bench mrf_energies --width 96 --height 64 --picture energies.svg
    """
    problem = motorcycle(width, height, 16).problem
    lines: dict[Method, tuple[MrfRun, list[float]]] = {}
    for method, name in _NAMES.items():
        say(f"{name} on {width} x {height} pixels")
        run, times = lines[method] = _line(problem, method, iterations, coarse)
        for number, (ms, value) in enumerate(zip(times, run.energies, strict=True)):
            yield Measurement(figure(method, number), value, "")
            yield Measurement(figure(method, number, "ms"), ms, "ms")
    bound = max(run.bounds[-1] for run, _ in lines.values() if run.bounds)
    yield Measurement("bound", bound, "", more_is_better=True)
    if picture is not None:
        _draw_methods(lines, bound, f"Motorcycle, {width} x {height} pixels, 16 labels", picture)


#: Iterations of TRW-S whose energy is a quick estimate, and most iterations.
_QUICK, _MOST = 10, 40


def _first(run: MrfRun, target: int) -> int:
    return next(number for number, value in enumerate(run.energies) if value <= target)


@experiment(presets=("vault",), tools=AMARANTH, minutes=5)
def trws_times(
    width: _Columns = 370,
    height: _Rows = 250,
    coarse: Annotated[int, typer.Option(help="Iterations on a quarter of the size.", min=1)] = 2,
) -> Iterator[Measurement]:
    """Time to an energy of TRW-S and of hierarchical TRW-S, on three pairs (thesis, Table 3.3).

    The pairs are Motorcycle and two made of photographs of scikit-image; 16 labels. The energy to
    reach is that of 10 iterations of TRW-S (quick), or the lowest that both methods reach in 40
    (better). Energies come from the golden model; the timing model counts the cycles of four
    engines of a vault at 1.25 GHz, which sum the costs of 2 x 2 pixels and copy the messages, too,
    and compares every message.

    Example: vip bench trws_times --width 96 --height 64
    """
    scenes = [motorcycle(width, height), *(made_scene(name, width, height) for name in MADE)]
    for scene in scenes:
        name = scene.name.lower()
        say(f"{scene.name}, {width} x {height} pixels")
        (flat, flat_ms), (levels, levels_ms) = (
            _line(scene.problem, method, _MOST, coarse) for method in ("trws", "htrws")
        )
        for part in _LAUNCHES:
            yield Measurement(figure(name, part), levels.cycles[part], "cycles")
        yield Measurement(figure(name, "flat"), flat.cycles[""], "cycles")
        lowest = max(min(run.energies) for run in (flat, levels))
        quick = max(lowest, min(flat.energies[: _QUICK + 1]))
        for kind, target in (("quick", quick), ("better", lowest)):
            numbers = [_first(run, target) for run in (flat, levels)]
            times = [flat_ms[numbers[0]], levels_ms[numbers[1]]]
            yield Measurement(figure(name, kind, "gap"), 100 * (target / flat.bounds[-1] - 1), "%")
            for method, number, ms in zip(("flat", "levels"), numbers, times, strict=True):
                yield Measurement(figure(name, kind, method, "iterations"), number, "")
                yield Measurement(figure(name, kind, method, "ms"), ms, "ms")
            less = 100 * (1 - times[1] / times[0]) if times[0] else 0
            yield Measurement(figure(name, kind, "less"), less, "%", more_is_better=True)


def _draw_methods(
    lines: dict[Method, tuple[MrfRun, list[float]]], bound: int, title: str, path: Path
) -> None:
    with picture(*_INCHES, path) as drawing:
        axis = drawing.subplots()
        for (method, (run, times)), marker in zip(lines.items(), MARKERS, strict=False):
            excess = [100 * (value / bound - 1) for value in run.energies]
            # The initial labels, from the data costs alone, are far above all others.
            axis.plot(times[1:], excess[1:], marker=marker, label=_NAMES[method])
        axis.set(
            xlabel="time of four engines of a vault at 1.25 GHz, ms",
            ylabel="energy above the lower bound, in %",
            yscale="log",
            xlim=(0, None),
            title=title,
        )
        axis.grid(which="both")
        axis.legend()


#: A made pair of squares: side of the pictures and of the square, its disparity, labels.
_SIDE, _SQUARE, _DISPARITY, _LABELS_OF_IT = 64, 24, 6, 16
#: Where the square begins, by whether the blocks of 8 x 8 and of 2 x 2 end at its sides.
_BEGINS = {"aligned": 24, "unaligned": 21}
#: Levels above the pixels, by the side of a block.
_ABOVE = {2: 1, 8: 3}
#: Iterations on the blocks and on the pixels.
_ON_BLOCKS, _ON_PIXELS = 10, 9


def _square(begin: int) -> BpProblem:
    """The field of a white square before red, ``begin`` pixels from the left and from above."""
    left = np.zeros((_SIDE, _SIDE, 3), np.uint8)
    left[..., 0] = 255
    right, rows = left.copy(), slice(begin, begin + _SQUARE)
    left[rows, rows] = 255
    right[rows, begin - _DISPARITY : begin + _SQUARE - _DISPARITY] = 255
    costs = matching_costs(left, right, labels=_LABELS_OF_IT)
    smoothness = smoothness_costs(_LABELS_OF_IT, "linear:2", 20)
    return BpProblem(costs, smoothness, 32, edge_weights("gradient:8,2", left))


def _distances(problem: BpProblem, above: int) -> NDArray[np.float64]:
    """``[y, x]``: L1 norm between the messages that blocks ``above`` levels higher hand down and
    those of the pixels when they have been iterated."""
    levels = [problem]
    for _ in range(above):
        levels.append(coarse_problem(levels[-1]))
    start = iterated(levels.pop(), _ON_BLOCKS, None)
    for level in reversed(levels):
        start = copied(level, start)
    end = iterated(problem, _ON_PIXELS, start)
    norms = np.abs(end.astype(np.int64) - start).sum(axis=(0, 3))
    return np.asarray(norms / (1 << FRACTION), np.float64)


@experiment(minutes=1)
def block_alignment(picture: PictureOption = None) -> Iterator[Measurement]:
    """How far messages of blocks of pixels are from those of the pixels (thesis, Figure 3.2).

    A white square before red ends where blocks do, or not; edges at its sides weigh half. TRW-S
    runs 10 iterations on blocks of 2 x 2 or 8 x 8 pixels and 9 on the pixels. Measured is the L1
    norm per pixel between the messages before the 9 and after them; golden model, 32 bits.

    Example: vip bench block_alignment --picture blocks.png
    """
    maps = {
        (kind, side): _distances(_square(begin), above)
        for kind, begin in _BEGINS.items()
        for side, above in _ABOVE.items()
    }
    for (kind, side), norms in maps.items():
        yield Measurement(figure(kind, side), float(norms.mean()), "")
    if picture is not None:
        _draw_blocks(maps, picture)


def _draw_blocks(maps: dict[tuple[str, int], NDArray[np.float64]], path: Path) -> None:
    most = max(float(norms.max()) for norms in maps.values())
    with picture(_INCHES[0], _INCHES[1] / 2, path) as drawing:
        axes = drawing.subplots(1, len(maps))
        for axis, ((kind, side), norms) in zip(axes, maps.items(), strict=True):
            image = axis.imshow(norms, cmap="gray", vmin=0, vmax=most)
            axis.set(title=f"{kind}, {side} x {side}", xticks=(), yticks=())
        drawing.colorbar(image, ax=axes, label="L1 norm of a pixel")


@experiment(tools=AMARANTH, minutes=1)
def instruction_types(picture: PictureOption = None) -> Iterator[Measurement]:
    """Reachable instructions of each application of the suite, by unit and type.

    Example: vip bench instruction_types --picture types.png
    """
    needs = {
        application.name: union(needed(program) for program in application.programs)
        for application in suite().values()
    }
    for name, need in needs.items():
        yield Measurement(figure(name), len(need.instructions), "instructions")
    if picture is not None:
        draw_needs(needs, picture)
