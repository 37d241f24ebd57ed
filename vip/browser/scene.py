"""The stereo problem of the page, packed when the page is made: a browser has no photographs."""

from io import BytesIO

import numpy as np

from microkernels.data.stereo import StereoScene, motorcycle

__all__ = ["SIZE", "packed_scene"]

#: Columns and rows of the problem, and its labels.
SIZE = (32, 24)
_LABELS = 16
#: Pixels of the photograph for each of the problem, and side.
_ZOOM = 10


def packed_scene() -> tuple[bytes, bytes]:
    """The problem of the Motorcycle pair as an archive of NumPy, and its left photograph as PNG.

    Raises:
        MissingExtraError: scikit-image or Pillow is not installed.
    """
    scene = motorcycle(*SIZE, _LABELS)
    file = BytesIO()
    np.savez_compressed(
        file,
        costs=scene.problem.data_costs,
        smoothness=scene.problem.smoothness,
        truth=np.asarray(scene.truth),
    )
    return file.getvalue(), _photograph(scene)


def _photograph(scene: StereoScene) -> bytes:
    """The part of the left photograph that the problem covers."""
    # It comes with the extra that the scene needs.
    from PIL import Image

    file = BytesIO()
    size = (_ZOOM * SIZE[0], _ZOOM * SIZE[1])
    Image.fromarray(scene.picture).resize(size).save(file, "PNG")
    return file.getvalue()
