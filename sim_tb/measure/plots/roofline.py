"""Roofline of a vault: how fast kernels run, over the operations that they do with a byte of memory
(thesis Figure 7.1)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hdl.ports import COLUMN_BYTES
from isa.timing import WORD_BYTES
from memory.timing import BURST_CLOCKS
from sim_tb.measure.kernel_rows import KernelRow
from soc.tile.config import VaultTileConfig
from support.picture import COLOURS, MARKERS, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_roofline", "roof"]

_ELEMENT_BYTES = 2
#: Stages of the vector unit that operate on each element (thesis, section 5.1).
_STAGES = 2
_INCHES = (12.0, 5.2)
#: How far beyond the extreme intensities the whole picture reaches, as a factor.
_MARGIN = 1.6
#: The second picture shows the knee: kernels with at least this share of its intensity.
_NEAR = 0.5
#: Points whose coordinates differ by less than this share of a picture share a text.
_CLOSE = 0.025
#: Pixels of the picture as it is laid out: a marker, a line of a name, one of its characters.
_MARK, _LINE, _CHARACTER = 12.0, 13.0, 5.6
_NAME_POINTS = 7
#: Points of the roof that names keep away from.
_LINE_SAMPLES = 400
#: Beginning of kernels' names -> their kind.
_KINDS = {
    "bp": "belief propagation",
    "conv": "convolution",
    "pool": "pooling",
    "fc": "fully connected",
    "lstm": "LSTM",
}


def roof(config: VaultTileConfig) -> tuple[float, float]:
    """Limits of a vault: GB/s of its memory, and 10**9 operations a second on 16-bit elements,
    counting both stages of each engine's vector unit."""
    tck = config.dram.timing.tck_ns
    operations = config.pes * (WORD_BYTES // _ELEMENT_BYTES) * _STAGES
    return COLUMN_BYTES / (BURST_CLOCKS * tck), operations / tck


def draw_roofline(rows: Sequence[KernelRow], config: VaultTileConfig, path: Path) -> None:
    """Write a picture with a point for each kernel that was run and has operations.

    Parameters:
        rows: from :func:`sim_tb.measure.kernels.measure_kernels`.
        config: of the vault on which they ran.
        path: file to write; replaced only when the picture is complete.

    Raises:
        OSError: the file can't be written.
    """
    # Images of a convolution's batch are the same run.
    points = list({(row.intensity, row.gops): row for row in rows if row.gops and row.gbs}.values())
    bandwidth, peak = roof(config)
    knee = peak / bandwidth
    reached = [knee, *(row.intensity for row in points)]
    edge = np.array([min(reached) / _MARGIN, knee, max(reached) * _MARGIN])
    with picture(*_INCHES, path) as figure:
        from matplotlib.ticker import LogLocator, NullFormatter

        whole, near = figure.subplots(1, 2)
        for axis in (whole, near):
            axis.plot(
                edge, np.minimum(edge * bandwidth, peak), color="black", label="limit of the vault"
            )
            for number, (start, label) in enumerate(_KINDS.items()):
                part = [row for row in points if row.name.startswith(start)]
                if part:
                    axis.plot(
                        [row.intensity for row in part],
                        [row.gops for row in part],
                        MARKERS[number],
                        color=COLOURS[number],
                        label=label,
                    )
            axis.set(
                xlabel="operations for each byte of memory",
                ylabel="10$^9$ operations a second and vault",
            )
            axis.grid(which="both")
        whole.set(xscale="log", yscale="log", xlim=edge[[0, -1]], title="Kernels on one vault")
        for ticks in (whole.xaxis, whole.yaxis):
            ticks.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ticks.set_major_formatter("{x:g}")
            ticks.set_minor_formatter(NullFormatter())
        near.set(
            xlim=(_NEAR * knee, 1.15 * max(reached)),
            ylim=(_NEAR * peak, 1.05 * peak),
            title=f"near the knee: {bandwidth:.0f} GB/s and {peak:.0f} Gop/s",
        )
        whole.legend(loc="lower right")
        # The frames get their size before names are placed in them.
        figure.draw_without_rendering()
        _name(
            whole,
            [row for row in points if row.intensity < _NEAR * knee],
            points,
            (bandwidth, peak),
        )
        _name(
            near,
            [row for row in points if row.intensity >= _NEAR * knee],
            points,
            (bandwidth, peak),
        )


def _name(
    axis: "Axes",
    points: Sequence[KernelRow],
    avoid: Sequence[KernelRow],
    limits: tuple[float, float],
) -> None:
    """Write the names of ``points`` beside them, where neither another name nor a point of
    ``avoid`` nor the roof (see :func:`roof`) is; those that lie together share one text."""
    to_picture = axis.transScale + axis.transLimits
    groups: list[tuple[float, float, list[str]]] = []
    for row in sorted(points, key=lambda row: row.name):
        x, y = to_picture.transform((row.intensity, row.gops))
        name = row.name + (f" x{row.batch}" if row.batch > 1 else "")
        for other_x, other_y, names in groups:
            if abs(x - other_x) < _CLOSE and abs(y - other_y) < _CLOSE:
                names.append(name)
                break
        else:
            groups.append((x, y, [name]))
    width, height = axis.get_window_extent().size
    marks = [to_picture.transform((row.intensity, row.gops)) for row in avoid]
    taken = [_box(x, y, _MARK, _MARK, width, height) for x, y in marks]
    low, high = axis.get_xlim()
    bandwidth, peak = limits
    line = np.geomspace(low, high, _LINE_SAMPLES)
    roofs = to_picture.transform(np.stack([line, np.minimum(line * bandwidth, peak)], axis=1))
    taken += [_box(x, y, 1.0, 1.0, width, height) for x, y in roofs]
    for x, y, names in groups:
        text = ", ".join(names)
        size = (_CHARACTER * len(text), _LINE)
        places = [
            (side * (size[0] / 2 + _MARK) if side else 0.0, lift * _LINE)
            for lift in (0, 1, -1, 2, -2, 3, -3, 4, -4)
            for side in (1, -1, 0)
            if side or lift
        ]
        boxes = [_box(x + dx / width, y + dy / height, *size, width, height) for dx, dy in places]
        best = min(range(len(boxes)), key=lambda number: _clash(boxes[number], taken))
        taken.append(boxes[best])
        far = abs(places[best][1]) > _LINE
        axis.annotate(
            text,
            (x, y),
            (x + places[best][0] / width, y + places[best][1] / height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            ha="center",
            va="center",
            fontsize=_NAME_POINTS,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4} if far else None,
        )


def _box(
    x: float, y: float, across: float, down: float, width: float, height: float
) -> tuple[float, float, float, float]:
    """Left, right, bottom and top, as shares of a picture of ``width`` x ``height`` pixels, of a
    box of ``across`` x ``down`` pixels around ``x``, ``y``."""
    return (
        x - across / width / 2,
        x + across / width / 2,
        y - down / height / 2,
        y + down / height / 2,
    )


def _clash(
    box: tuple[float, float, float, float], taken: Sequence[tuple[float, float, float, float]]
) -> float:
    """Cost of the parts of ``box`` that cover taken places or lie outside of the frame."""
    left, right, low, high = box
    outside = max(0.0, -left) + max(0.0, right - 1) + max(0.0, -low) + max(0.0, high - 1)
    covered = (
        max(0.0, min(right, other[1]) - max(left, other[0]))
        * max(0.0, min(high, other[3]) - max(low, other[2]))
        for other in taken
    )
    return 1000 * outside + sum(covered)
