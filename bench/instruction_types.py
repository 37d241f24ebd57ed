"""``python -m bench.instruction_types``: the instructions of the suite by unit and type."""

from pathlib import Path
from typing import Annotated

import typer

from microkernels.suite import suite
from synth.analysis.histogram import draw_needs
from synth.analysis.needs import needed, union

__all__: list[str] = []


def main(path: Annotated[Path, typer.Option(help="PNG or SVG to write.")]) -> None:
    """Draw the reachable instructions of each application by unit and type.

    Example: python -m bench.instruction_types --path types.png
    """
    draw_needs(
        {
            application.name: union(needed(program) for program in application.programs)
            for application in suite()
        },
        path,
    )


if __name__ == "__main__":
    typer.run(main)
