"""``python -m bench.mrf_energies``: energies of BP-M and TRW-S, also hierarchical, against time.

The timing model counts the cycles of four engines of a vault, at 1.25 GHz, for one iteration; the
others do the same work, and their energies come from the golden model. The choice of labels is not
counted: those of BP-M are the least beliefs, those of TRW-S are chosen in raster order by the host.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from microkernels.bp.problem import BpProblem
from microkernels.data.stereo import motorcycle
from support.picture import MARKERS, SUFFIXES, check_picture, picture
from vip.mrf.result import Method
from vip.mrf.run import solve_mrf

from .measurement import BenchError
from .terminal import console, run, say

_PICTURE = Path(__file__).parent.parent / "docs" / "images" / "mrf_energies.png"
_INCHES = (7.5, 4.0)
_CYCLES_A_MS = 1.25e6
_NAMES: dict[Method, str] = {
    "bp": "BP-M",
    "hbp": "hierarchical BP-M",
    "trws": "TRW-S",
    "htrws": "hierarchical TRW-S",
}
#: Launches between the levels of hierarchical BP-M. The host does their work for TRW-S, whose
#: vectors are as many and as long, so its time counts them, too.
_BETWEEN = ("construct", "copy")
#: Launch that chooses the labels of BP-M.
_LABELS = "labels"


@dataclass(frozen=True, kw_only=True)
class _Line:
    """Energies of a method.

    Attributes:
        cycles: of each launch of a run with one iteration.
        times: ms from the start to each energy.
        energies: before the first iteration on all pixels, and after each.
        bound: no energy is below; None: the method has none.
    """

    cycles: dict[str, int]
    times: list[float]
    energies: tuple[int, ...]
    bound: int | None


def _line(
    problem: BpProblem, method: Method, iterations: int, coarse: int, lines: dict[Method, _Line]
) -> _Line:
    one = solve_mrf(
        problem, "vault", method=method, iterations=1, coarse_iterations=coarse, on="model"
    )
    if not one.match:
        raise BenchError(f"{_NAMES[method]}: messages differ from the golden model's")
    every = solve_mrf(problem, method=method, iterations=iterations, coarse_iterations=coarse)
    last = "fine" if method in ("hbp", "htrws") else ""
    before = sum(cycles for name, cycles in one.cycles.items() if name not in (last, _LABELS))
    if method == "htrws":
        before += sum(lines["hbp"].cycles[name] for name in _BETWEEN)
    return _Line(
        cycles=one.cycles,
        times=[
            (before + number * one.cycles[last]) / _CYCLES_A_MS for number in range(iterations + 1)
        ],
        energies=every.energies,
        bound=every.bounds[-1] if every.bounds else None,
    )


def _draw(lines: dict[Method, _Line], bound: int, title: str, path: Path) -> None:
    with picture(*_INCHES, path) as figure:
        axis = figure.subplots()
        for (method, line), marker in zip(lines.items(), MARKERS, strict=False):
            excess = [100 * (value / bound - 1) for value in line.energies]
            # The labels of the data costs alone are far above all others.
            axis.plot(line.times[1:], excess[1:], marker=marker, label=_NAMES[method])
        axis.set(
            xlabel="time of four engines of a vault at 1.25 GHz, ms",
            ylabel="energy above the lower bound, in %",
            yscale="log",
            xlim=(0, None),
            title=title,
        )
        axis.grid(which="both")
        axis.legend()


def main(
    path: Annotated[Path, typer.Option(help="Picture to write, .png or .svg.")] = _PICTURE,
    width: Annotated[int, typer.Option(help="Columns of the Motorcycle pair's grid.")] = 370,
    height: Annotated[int, typer.Option(help="Its rows.")] = 250,
    iterations: Annotated[int, typer.Option(help="Iterations.", min=1)] = 10,
    coarse: Annotated[
        int,
        typer.Option(help="Iterations of hierarchical methods on a quarter of the size.", min=1),
    ] = 2,
) -> None:
    """Measure, print and draw the energies; the document's picture as PNG and SVG.

    Every message of the timing model's run is compared with the golden model's. The lower bound is
    that of TRW-S after its last iteration.

    Example: python -m bench.mrf_energies --width 96 --height 64 --path energies.svg
    """
    check_picture(path)
    problem = motorcycle(width, height, 16).problem
    lines: dict[Method, _Line] = {}
    for method, name in _NAMES.items():
        say(f"{name} on {width} x {height} pixels")
        lines[method] = _line(problem, method, iterations, coarse, lines)
    bound = max(line.bound for line in lines.values() if line.bound is not None)
    for method, line in lines.items():
        table = Table("iterations", "ms", "energy", title=_NAMES[method])
        for number, (ms, value) in enumerate(zip(line.times, line.energies, strict=True)):
            table.add_row(str(number), f"{ms:.3f}", f"{value:,}")
        console.print(table)
    console.print(f"no energy is below {bound:,}")
    for suffix in SUFFIXES if path == _PICTURE else (path.suffix,):
        title = f"Motorcycle, {width} x {height} pixels, 16 labels"
        _draw(lines, bound, title, path.with_suffix(suffix))


if __name__ == "__main__":
    run(main)
