"""The picture of how BP-M scales."""

from collections.abc import Sequence
from pathlib import Path

from isa.support.picture import COLOURS, MARKERS, picture

from .scaling import Point

__all__ = ["draw_scaling"]

_INCHES = (13.0, 4.6)


def draw_scaling(points: Sequence[tuple[str, Point]], path: Path) -> None:
    """Write a picture of time over vaults, engines a vault and messages.

    Parameters:
        points: of :func:`sim_tb.measure.scaling.measure_scaling`, of all three series.
        path: PNG or SVG; replaced only when the picture is complete.

    Raises:
        OSError: the file can't be written.
    """
    series = {
        name: [point for kind, point in points if kind == name]
        for name in ("vaults", "engines", "image")
    }
    titles = {
        "vaults": "240 x 136 pixels, 4 engines a vault",
        "engines": "240 x 136 pixels, 32 vaults",
        "image": "32 vaults, 4 engines a vault",
    }
    with picture(*_INCHES, path) as figure:
        for axis, (name, found) in zip(figure.subplots(1, 3), series.items(), strict=True):
            across = [
                point.vaults
                if name == "vaults"
                else point.engines
                if name == "engines"
                else point.updates / 1000
                for point in found
            ]
            engines = [point.vaults * point.engines for point in found]
            axis.loglog(
                across,
                [point.ms for point in found],
                f"{MARKERS[0]}-",
                color=COLOURS[0],
                label="measured",
            )
            axis.loglog(
                across,
                [
                    point.updates * _VECTOR_CYCLES * point.tck_ns / count / 1e6
                    for point, count in zip(found, engines, strict=True)
                ],
                "--",
                color=COLOURS[1],
                label="vector units always busy",
            )
            axis.set_xticks(across, [f"{value:,.0f}" for value in across])
            axis.minorticks_off()
            axis.set_title(titles[name], fontsize=10)
            axis.set_xlabel(
                {
                    "vaults": "vaults",
                    "engines": "engines a vault",
                    "image": "messages, thousands",
                }[name]
            )
            axis.set_ylabel("ms an iteration of BP-M at 1.25 GHz")
            axis.legend(fontsize=8)
            axis.grid(alpha=0.3)


#: Cycles of the vector unit for a message of 16 labels (microkernels/bp/schedule.py).
_VECTOR_CYCLES = 80
