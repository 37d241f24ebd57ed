"""Instructions of programs by unit and type, as a picture like SCRATCH's Figure 4."""

from io import BytesIO
from pathlib import Path

from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from isa.files import write_atomically
from isa.table import Unit

from .trim import TrimReport

__all__ = ["draw_types"]

#: Colours of a unit's types, from dark to light.
_COLOURS = {
    Unit.SCALAR: "Blues",
    Unit.VECTOR: "Oranges",
    Unit.LOAD_STORE: "Greens",
    Unit.ISSUE: "Greys",
}
_INCHES_WIDE = 9.0
_DPI = 120


def draw_types(cut: TrimReport, path: Path, *, name: str) -> None:
    """Write a PNG: for each program, and all together, the reachable words by unit and type, one
    bar, in percent.

    Parameters:
        cut: of the programs. name: of the program, where there is one.
        path: file to write; replaced only when the picture is complete.

    Raises:
        OSError: the file can't be written.
    """
    programs = {name: cut.needs}
    if len(cut.parts) > 1:
        programs = {**cut.parts, "all": cut.needs}
    counts = {shown: needs.types() for shown, needs in programs.items()}
    kinds = [
        (unit, kind)
        for unit in Unit
        for kind in sorted({kind for types in counts.values() for kind in types.get(unit, {})})
    ]
    figure = Figure(
        figsize=(_INCHES_WIDE, 1.4 + 0.25 * len(programs) + 0.06 * len(kinds)), layout="constrained"
    )
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    names = list(counts)
    ends = [0.0] * len(names)
    for unit, kind in kinds:
        own = [other for where, other in kinds if where is unit]
        shade = 0.85 - 0.6 * own.index(kind) / max(1, len(own))
        shares = [
            100 * counts[shown].get(unit, {}).get(kind, 0) / programs[shown].reachable
            for shown in names
        ]
        axis.barh(
            names,
            shares,
            left=ends,
            color=colormaps[_COLOURS[unit]](shade),
            edgecolor="white",
            linewidth=0.5,
            label=f"{unit.value}: {kind}",
        )
        ends = [end + share for end, share in zip(ends, shares, strict=True)]
    axis.set(xlim=(0, 100), xlabel="percent of the words that can be reached")
    axis.set_ylim(len(names) - 0.4, -0.6)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8)
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=_DPI, metadata={"Software": None})
    write_atomically(path, picture.getvalue())
