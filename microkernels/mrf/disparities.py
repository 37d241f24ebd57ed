"""Disparity maps as files, and their error in the measures of the Middlebury stereo pages."""

import re
import warnings
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from isa.support.extras import need
from isa.support.files import read_bytes
from microkernels.common.errors import KernelError

__all__ = [
    "ENDINGS",
    "Disparities",
    "StereoErrors",
    "encoded",
    "png_factor",
    "read_mask",
    "read_truth",
    "sampled",
    "stereo_errors",
]

#: Endings of the files that a disparity map is written to.
ENDINGS = (".png", ".npy", ".pfm")
#: ``[y, x]``, in pixels; not finite where unknown.
Disparities = NDArray[np.float64]
#: Type of one value of an array over pixels.
Value = TypeVar("Value", bound=np.generic)
_MOST_BYTES = 1 << 28
_MOST_PIXELS = 1 << 24
_PFM = re.compile(rb"Pf\s+(\d{1,5})\s+(\d{1,5})\s+(-?\d{1,9}(?:\.\d{0,9})?)\s")


def encoded(disparities: Disparities, ending: str) -> bytes:
    """The file of a disparity map.

    Parameters:
        ending: ``.npy`` (32-bit floating point), ``.pfm`` (the same, portable float map, rows from
            the bottom) or ``.png`` (8 bits, times :func:`png_factor`).

    Raises:
        MissingExtraError: Pillow is not installed, which PNG needs.
    """
    single = np.ascontiguousarray(disparities, "<f4")
    target = BytesIO()
    if ending == ".npy":
        np.save(target, single)
    elif ending == ".pfm":
        height, width = single.shape
        target.write(f"Pf\n{width} {height}\n-1.0\n".encode() + single[::-1].tobytes())
    else:
        need("PIL", "pictures")
        from PIL import Image

        levels = np.rint(disparities * png_factor(disparities)).clip(0, 255)
        Image.fromarray(levels.astype(np.uint8)).save(target, format="PNG")
    return target.getvalue()


def png_factor(disparities: Disparities) -> int:
    """Grey levels of a pixel of disparity in a PNG: the largest whole number, 1 to 255, with which
    the largest disparity fits 8 bits."""
    most = float(disparities.max())
    return max(1, min(255, int(255 // most))) if most > 0 else 1


def read_truth(path: Path, factor: float) -> Disparities:
    """True disparities in pixels; unknown ones are not finite.

    Parameters:
        path: PNG or another picture with one channel of 8 or 16 bits, where 0 means unknown; PFM;
            or an array of NumPy (``.npy``, or the only one of ``.npz``).
        factor: the file's numbers are disparities times ``factor``, above 0.

    Raises:
        KernelError: a file that holds no such map.
        MissingExtraError: Pillow is not installed, which pictures need.
    """
    content = _read(path)
    ending = path.suffix.lower()
    if ending in (".npy", ".npz"):
        found = _array(path, content)
    elif ending == ".pfm":
        found = _float_map(path, content)
    else:
        found = _picture(path, content)
        found[found == 0] = np.inf
    return found / factor


def read_mask(path: Path) -> NDArray[np.bool_]:
    """``[y, x]``: the pixels of a picture that are white (255), as Middlebury marks those that both
    pictures of a pair show.

    Raises:
        KernelError: no picture of one channel.
        MissingExtraError: Pillow is not installed.
    """
    found: NDArray[np.bool_] = _picture(path, _read(path)) == 255
    return found


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path, _MOST_BYTES)
    except OSError as error:
        raise KernelError(f"{path}: can't be read: {error.strerror}") from error


def _array(path: Path, content: bytes) -> Disparities:
    try:
        found = np.load(BytesIO(content), allow_pickle=False)
        if not isinstance(found, np.ndarray):
            (name,) = found.files
            found = found[name]
        if found.ndim != 2 or found.dtype.kind not in "iuf":
            raise ValueError
        result: Disparities = found.astype(np.float64)
    except Exception as error:
        # NumPy raises many kinds of exceptions on damaged files.
        raise KernelError(f"{path}: no array of NumPy with one number for each pixel") from error
    return result


def _float_map(path: Path, content: bytes) -> Disparities:
    head = _PFM.match(content)
    if head is None:
        raise KernelError(f"{path}: no portable float map with one channel (Pf)")
    width, height, scale = int(head[1]), int(head[2]), float(head[3])
    kind = np.dtype("<f4" if scale < 0 else ">f4")
    body = content[head.end() :]
    if len(body) != width * height * kind.itemsize or not body:
        raise KernelError(
            f"{path}: {width} x {height} pixels need {width * height * kind.itemsize} bytes, the "
            f"file has {len(body)}"
        )
    rows = np.frombuffer(body, kind).reshape(height, width)
    result: Disparities = rows[::-1].astype(np.float64)
    return result


def _picture(path: Path, content: bytes) -> Disparities:
    need("PIL", "pictures")
    from PIL import Image

    try:
        with warnings.catch_warnings(action="ignore"), Image.open(BytesIO(content)) as image:
            # Pillow warns of damaged files that it then refuses.
            if image.width * image.height > _MOST_PIXELS:
                raise KernelError(
                    f"{path}: the image has {image.width} x {image.height} pixels; at most "
                    f"{_MOST_PIXELS:,} can be taken"
                )
            pixels = np.asarray(image)
    except KernelError:
        raise
    except Exception as error:
        # Pillow's decoders raise many kinds of exceptions on damaged files.
        raise KernelError(f"{path}: not a readable image") from error
    if pixels.ndim == 3 and (pixels == pixels[..., :1]).all():
        pixels = pixels[..., 0]
    if pixels.ndim != 2 or pixels.dtype.kind not in "iu":
        raise KernelError(f"{path}: an image with one channel of 8 or 16 bits is needed")
    result: Disparities = pixels.astype(np.float64)
    return result


def sampled(values: NDArray[Value], shape: tuple[int, int]) -> NDArray[Value]:
    """``values[y, x]`` on a grid of ``shape``: for each pixel of the grid the nearest value."""
    rows, columns = (
        np.minimum(((np.arange(new) + 0.5) * old / new).astype(int), old - 1)
        for new, old in zip(shape, values.shape, strict=True)
    )
    return values[np.ix_(rows, columns)]


@dataclass(frozen=True, kw_only=True)
class StereoErrors:
    """Errors of disparities over a set of pixels, in percent of them or in pixels.

    Attributes:
        pixels: whose truth is known.
        bad_1, bad_2: percent that are off by more than 1.0 or 2.0 pixels.
        mean: absolute error. rms: root of the mean square.
    """

    pixels: int
    bad_1: float
    bad_2: float
    mean: float
    rms: float

    def to_json(self) -> dict[str, float]:
        """Plain data."""
        return asdict(self)


def stereo_errors(
    disparities: Disparities, truth: Disparities, mask: NDArray[np.bool_] | None = None
) -> StereoErrors:
    """Errors over all pixels of known truth, or over those of them in ``mask``.

    Raises:
        KernelError: different shapes; no pixel to compare.
    """
    for name, other in (("truth", truth), ("mask", mask)):
        if other is not None and other.shape != disparities.shape:
            raise KernelError(
                f"the {name} has {other.shape[1]} x {other.shape[0]} pixels, the disparities "
                f"{disparities.shape[1]} x {disparities.shape[0]}"
            )
    known = np.isfinite(truth) if mask is None else np.isfinite(truth) & mask
    if not known.any():
        raise KernelError("the true disparity of no pixel is known")
    off = np.abs(disparities - truth)[known]
    return StereoErrors(
        pixels=int(known.sum()),
        bad_1=float(100 * (off > 1).mean()),
        bad_2=float(100 * (off > 2).mean()),
        mean=float(off.mean()),
        rms=float(np.sqrt((off * off).mean())),
    )
