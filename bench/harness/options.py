"""Options shared by several experiments."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from support.errors import unknown
from vip.cli.commands.options import drawing
from vip.cli.errors import UserError

PictureOption = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", callback=drawing(), help="Draw as PNG or SVG."),
]
NamesOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="Measure only this part; may be repeated."),
]
SeedOption = Annotated[int, typer.Option(help="Seed of everything random.", min=0, max=2**31)]


def chosen(names: list[str] | None, parts: Iterable[str]) -> list[str]:
    """The ``parts`` that ``names`` lists; all if ``names`` is empty.

    Raises:
        UserError: a name is not one of ``parts``.
    """
    every = list(parts)
    for name in names or ():
        if name not in every:
            raise UserError(f"--only: {unknown('part', name, every)}")
    return [name for name in every if not names or name in names]
