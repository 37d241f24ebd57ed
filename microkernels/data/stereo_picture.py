"""The picture that shows a stereo result beside the photograph and the truth."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from support.picture import DISPARITIES, picture

from .stereo import StereoError, StereoScene, percent_wrong

__all__ = ["draw"]

_PANEL_INCHES = 4.0
_UNKNOWN = "lightgrey"


def draw(scene: StereoScene, labels: NDArray[np.integer], path: Path, *, caption: str) -> None:
    """Write a picture: left photograph, true disparities (if known), computed disparities.

    Parameters:
        scene: the problem that was solved.
        labels: ``[y, x]``, its solution.
        path: file to write; replaced only when the picture is complete.
        caption: title of the computed disparities, e.g. ``BP-M on the PE, 5 iterations``.

    Raises:
        StereoError: labels of another size, or a file that can't be written.
    """
    expected = (scene.problem.height, scene.problem.width)
    if labels.shape != expected:
        raise StereoError(f"labels must have the shape {expected}, not {labels.shape}")
    panels: list[tuple[str, NDArray[np.number]]] = [(f"{scene.name}, left image", scene.picture)]
    if scene.truth is not None:
        panels.append(("true disparities", _in_pixels(scene, scene.truth)))
        caption += f": {percent_wrong(labels, scene.truth):.1f} % off by more than a label"
    panels.append((caption, _in_pixels(scene, labels)))

    height = _PANEL_INCHES * expected[0] / expected[1] + 0.6
    limits = {"vmin": float(scene.disparities[0]), "vmax": float(scene.disparities[-1])}
    try:
        with picture(_PANEL_INCHES * len(panels) + 0.8, height, path) as figure:
            from matplotlib import colormaps

            axes = figure.subplots(1, len(panels), squeeze=False)[0]
            colours = colormaps[DISPARITIES].with_extremes(bad=_UNKNOWN)
            for axis, (title, image) in zip(axes, panels, strict=True):
                axis.set_title(title, fontsize=9)
                axis.set_axis_off()
                if image.ndim == 3:
                    axis.imshow(image)
                else:
                    mapped = axis.imshow(image, cmap=colours, interpolation="nearest", **limits)
            figure.colorbar(mapped, ax=axes[-1], label="disparity (pixels of the photograph)")
    except OSError as error:
        raise StereoError(f"{path}: {error.strerror or error}") from error


def _in_pixels(scene: StereoScene, labels: NDArray[np.integer]) -> NDArray[np.float64]:
    return np.where(labels >= 0, scene.disparities[labels], np.nan)
