"""A plot of the instructions of programs by unit and type, like SCRATCH's Figure 4."""

from collections.abc import Mapping
from pathlib import Path

from isa.table import Unit
from support.picture import COLOURS, picture, tint

from .needs import Needs, union
from .trim import TrimReport

#: Colour of each unit; its types range from this to a light tint.
_UNIT_COLOURS = {
    Unit.SCALAR: COLOURS[0],
    Unit.VECTOR: COLOURS[1],
    Unit.LOAD_STORE: COLOURS[2],
    Unit.ISSUE: "#4d4d4d",
}
#: Fraction of the colour in the lightest tint.
_LIGHTEST = 0.25
_INCHES_WIDE = 9.0


def draw_types(cut: TrimReport, path: Path, *, name: str) -> None:
    """Draw a bar for each program and one for all together, with the percentages of reachable words
    by unit and type.

    Parameters:
        cut: of the programs. name: of the program, if there is only one.
        path: file to write; replaced only when the picture is complete.

    Raises:
        OSError: the file can't be written.
    """
    draw_needs({name: cut.needs} if len(cut.parts) < 2 else cut.parts, path)


def draw_needs(programs: Mapping[str, Needs], path: Path) -> None:
    """:func:`draw_types` from the needs of each program by name."""
    if len(programs) > 1:
        programs = {**programs, "all": union(programs.values())}
    counts = {label: needs.types() for label, needs in programs.items()}
    kinds = [
        (unit, kind)
        for unit in Unit
        for kind in sorted({kind for types in counts.values() for kind in types.get(unit, {})})
    ]
    names = list(counts)
    ends = [0.0] * len(names)
    height = 1.4 + 0.25 * len(programs) + 0.06 * len(kinds)
    with picture(_INCHES_WIDE, height, path) as figure:
        axis = figure.subplots()
        for unit, kind in kinds:
            of_unit = [other for where, other in kinds if where is unit]
            share = 1 - (1 - _LIGHTEST) * of_unit.index(kind) / max(1, len(of_unit) - 1)
            shares = [
                100 * counts[label].get(unit, {}).get(kind, 0) / programs[label].reachable
                for label in names
            ]
            axis.barh(
                names,
                shares,
                left=ends,
                color=tint(_UNIT_COLOURS[unit], share),
                edgecolor="black",
                linewidth=0.4,
                label=f"{unit.value}: {kind}",
            )
            ends = [end + share for end, share in zip(ends, shares, strict=True)]
        axis.set(xlim=(0, 100), xlabel="percent of the words that can be reached")
        axis.set_ylim(len(names) - 0.4, -0.6)
        figure.legend(loc="outside lower center", ncols=4)
