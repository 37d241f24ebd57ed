"""``python -m bench.energies``: how fast BP-M's energy falls, on one level and on two.

Thesis 7.2.1: five iterations of hierarchical BP-M reach the energy of eight of BP-M. The golden
models compute; the machine's messages are the same to the bit.
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from microkernels.bp.golden import energy, iterate, labels
from microkernels.bp.levels import coarse_problem, copied
from microkernels.bp.problem import BpProblem, Messages
from microkernels.data.stereo import motorcycle
from support.picture import SUFFIXES, check_picture, picture

from .terminal import console, run, say

#: Iterations on the coarse level, as in the thesis, and most iterations on the fine level.
_COARSE = 5
_FLAT = 10
_LEVELS = 7
#: Iterations on one level whose energy two levels are to reach (thesis 7.2.1).
_REFERENCE = 8
_INCHES = (7.5, 4.0)
_PICTURE = Path(__file__).parent.parent / "docs" / "images" / "bp_energies.png"


def _energies(problem: BpProblem, messages: Messages, iterations: int) -> list[int]:
    """Energies of the labels before the first iteration and after each."""
    found = [energy(problem, labels(problem, messages))]
    for _ in range(iterations):
        messages = iterate(problem, 1, messages)
        found.append(energy(problem, labels(problem, messages)))
    return found


def _draw(flat: list[int], levels: list[int], title: str, path: Path) -> None:
    reference = flat[_REFERENCE]
    with picture(*_INCHES, path) as figure:
        axis = figure.subplots()
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


def main(
    path: Annotated[Path, typer.Option(help="Picture to write, .png or .svg.")] = _PICTURE,
    width: Annotated[int, typer.Option(help="Columns of the Motorcycle pair's grid.")] = 741,
    height: Annotated[int, typer.Option(help="Its rows.")] = 500,
) -> None:
    """Compute the energies, print them and draw them; the document's picture as PNG and SVG.

    Example: python -m bench.energies --width 370 --height 250
    """
    check_picture(path)
    problem = motorcycle(width, height, 16).problem
    say(f"{_FLAT} iterations of {width} x {height} pixels")
    flat = _energies(problem, problem.no_messages(), _FLAT)
    say(f"{_COARSE} coarse iterations, {_LEVELS} more")
    begin = copied(problem, iterate(coarse_problem(problem), _COARSE))
    levels = _energies(problem, begin, _LEVELS)
    table = Table("iterations at full size", "BP-M", "hierarchical")
    for count, value in enumerate(flat):
        other = f"{levels[count]:,}" if count < len(levels) else ""
        table.add_row(str(count), f"{value:,}", other)
    console.print(table)
    reached = [count for count, value in enumerate(levels) if value <= flat[_REFERENCE]]
    said = f"after {reached[0]} iterations" if reached else f"not within {_LEVELS} iterations"
    console.print(f"two levels reach the energy of {_REFERENCE} iterations on one {said}")
    for suffix in SUFFIXES if path == _PICTURE else (path.suffix,):
        title = f"Motorcycle, {width} x {height} pixels, 16 labels"
        _draw(flat, levels, title, path.with_suffix(suffix))


if __name__ == "__main__":
    run(main)
