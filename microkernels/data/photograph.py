"""A photograph for kernels that work on images: scikit-image's cameraman."""

from importlib.resources import as_file, files

import numpy as np

from microkernels.common.errors import CHECK
from microkernels.common.fixed_point import Elements
from support.extras import need

from .pictures import read_samples

__all__ = ["SIDE", "photograph"]

#: Pixels across and down of the whole photograph.
SIDE = 512


def photograph(height: int, width: int) -> Elements:
    """The photograph's middle, shrunk to height x width pixels (1..512 each) from 0 to 255, 16-bit
    elements.

    Raises:
        KernelError: a size outside its range.
        MissingExtraError: scikit-image or Pillow is not installed.
    """
    for package in ("skimage", "PIL"):
        need(package, "photographs")
    CHECK.within("height", height, 1, SIDE)
    CHECK.within("width", width, 1, SIDE)
    scale = min(SIDE // height, SIDE // width)
    with as_file(files("skimage") / "data" / "camera.png") as path:
        pixels = read_samples(path).values[..., 0].astype(np.int64)
    top, left = (SIDE - height * scale) // 2, (SIDE - width * scale) // 2
    middle = pixels[top : top + height * scale, left : left + width * scale]
    blocks = middle.reshape(height, scale, width, scale)
    means: Elements = blocks.mean(axis=(1, 3))
    return means.astype(np.int16)
