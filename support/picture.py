"""Pictures: one style for all, written as PNG or SVG depending on the file's name.

The colours are those of Okabe and Ito, which people with any kind of colour blindness can
distinguish; a test verifies this. Lines and bars that would differ only in colour also differ in
marker, dash or place. Matplotlib comes with the extra ``plot`` and is imported when a picture is
drawn.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .errors import VipError
from .extras import need
from .files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours of series, in the order of use: blue, orange, green, vermilion, purple, sky blue.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9")
#: Colour of a reference series.
MUTED = "#9aa5b1"
#: Markers that go with :data:`COLOURS`.
MARKERS = ("o", "s", "^", "D", "v", "*")
#: Colour map of disparities: monotonic in lightness, so it also works for the colour-blind.
DISPARITIES = "viridis"
#: Supported file endings.
SUFFIXES = (".png", ".svg")

_DPI = 120
_STYLE: Any = MappingProxyType(
    {
        "font.size": 9.0,
        "axes.titlesize": 10.0,
        "axes.labelsize": 9.0,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.8,
        "grid.alpha": 0.3,
        "grid.linewidth": 0.6,
        "legend.fontsize": 8.0,
        "legend.framealpha": 0.9,
        "lines.markersize": 4.5,
        "lines.linewidth": 1.4,
        # Equal pictures are equal files.
        "svg.hashsalt": "vip",
    }
)
#: Without the tool's version and the date, equal pictures are equal files.
_METADATA: Mapping[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Creator": None, "Date": None},
}


class PictureError(VipError):
    """The picture can't be written; the message names the file."""


def check_picture(path: Path | None) -> None:
    """Check before the work that a picture of ``path``'s format can be drawn.

    Raises:
        PictureError: the file's ending is not one of :data:`SUFFIXES`.
        MissingExtraError: matplotlib is not installed.
    """
    if path is None:
        return
    if path.suffix.lower() not in SUFFIXES:
        raise PictureError(f"{path}: a picture's name ends in {' or '.join(SUFFIXES)}")
    need("matplotlib", "pictures")


@contextmanager
def picture(width: float, height: float, path: Path) -> Iterator["Figure"]:
    """A figure to draw on, written to ``path`` when the block ends.

    Parameters:
        width, height: in inches.
        path: file to write, PNG or SVG by its ending; replaced only when the picture is complete.

    Raises:
        PictureError, MissingExtraError: as from :func:`check_picture`.
        OSError: the file can't be written.
    """
    check_picture(path)
    from cycler import cycler
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context({**_STYLE, "axes.prop_cycle": cycler(color=COLOURS)}):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        kind = path.suffix.lower()
        content = BytesIO()
        figure.savefig(content, format=kind[1:], dpi=_DPI, metadata=_METADATA[kind])
    write_atomically(path, content.getvalue())


def tint(colour: str, share: float) -> tuple[float, float, float]:
    """``colour`` (``#rrggbb``) mixed with white: itself for a ``share`` of 1, white for 0."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (1 - share * (1 - part) for part in parts)
    return red, green, blue
