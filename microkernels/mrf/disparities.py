"""Disparity map files, and errors as measured by the Middlebury stereo pages."""

import re
from io import BytesIO
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import KernelError
from microkernels.data.pictures import HEADER_GAP, read_content, read_grey
from support.extras import need

#: File suffixes for disparity maps.
ENDINGS = (".png", ".npy", ".pfm")
#: ``[y, x]``, in pixels; not finite where unknown.
Disparities = NDArray[np.float64]
#: Type of one value of an array over pixels.
Value = TypeVar("Value", bound=np.generic)
#: White in masks of 1, 8 and 16 bits.
_WHITES = (1, 255, 65535)
_SCALE = rb"([-+]?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(?:[eE][-+]?\d{1,2})?)"
_PFM = re.compile(HEADER_GAP.join([rb"Pf", rb"(\d{1,5})", rb"(\d{1,5})", _SCALE]))
#: Separator of a portable float map's header and its numbers.
_PFM_END = re.compile(rb"[ \t]*(?:\r\n|\s)")


def encoded(disparities: Disparities, ending: str) -> bytes:
    """A disparity map's file contents.

    Parameters:
        ending: ``.npy`` (32-bit floating point), ``.pfm`` (the same, portable float map, rows from
            the bottom) or ``.png`` (8 bits, times :func:`png_factor`).

    Raises:
        MissingExtraError: ``ending`` is ``.png`` and Pillow is not installed.
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


def encoded_flow(motions: NDArray[np.integer], ending: str) -> bytes:
    """The file contents of motions ``[y, x, (right, down)]``.

    Parameters:
        ending: ``.npy`` (32-bit floating point) or ``.flo`` (the same, Middlebury's format).
    """
    single = np.ascontiguousarray(motions, "<f4")
    target = BytesIO()
    if ending == ".npy":
        np.save(target, single)
    else:
        height, width = single.shape[:2]
        target.write(b"PIEH" + np.array([width, height], "<i4").tobytes() + single.tobytes())
    return target.getvalue()


def png_factor(disparities: Disparities) -> int:
    """Grey levels per pixel of disparity in a PNG: the largest whole number, 1 to 255, for which
    the largest disparity fits in 8 bits."""
    largest = float(disparities.max())
    return max(1, min(255, int(255 // largest))) if largest > 0 else 1


def read_truth(path: Path, factor: float) -> Disparities:
    """True disparities in pixels; unknown ones are not finite.

    Parameters:
        path: PNG or another picture with one channel, where 0 means unknown; PFM, whose scale is
            not applied; or a NumPy array (``.npy``, or the only one in an ``.npz``).
        factor: the file's numbers are disparities times ``factor``, above 0.

    Raises:
        KernelError: the file does not contain such a map.
        MissingExtraError: the file is a picture and Pillow is not installed.
    """
    ending = path.suffix.lower()
    if ending in (".npy", ".npz"):
        numbers = _array(path, read_content(path))
    elif ending == ".pfm":
        numbers = _float_map(path, read_content(path))
    else:
        numbers = _numbers(path).astype(np.float64)
        numbers[numbers == 0] = np.inf
    return numbers / factor


def read_mask(path: Path) -> NDArray[np.bool_]:
    """``[y, x]``: the white pixels of a picture, with which Middlebury marks those visible in both
    pictures of a pair. White is 1, 255 or 65535, whichever is the picture's largest sample.

    Raises:
        KernelError: the picture has several channels, or another largest sample.
        MissingExtraError: Pillow is not installed.
    """
    samples = _numbers(path)
    white = samples.max()
    if white not in _WHITES:
        raise KernelError(
            f"{path}: a mask's white must be 1, 255 or 65535; the largest number is {white}"
        )
    mask: NDArray[np.bool_] = samples == white
    return mask


def _array(path: Path, content: bytes) -> Disparities:
    try:
        array = np.load(BytesIO(content), allow_pickle=False)
        if not isinstance(array, np.ndarray):
            (name,) = array.files
            array = array[name]
        if array.ndim != 2 or array.dtype.kind not in "iuf":
            raise ValueError
        result: Disparities = array.astype(np.float64)
    except Exception as error:
        # NumPy raises many kinds of exceptions for damaged files.
        raise KernelError(f"{path}: not a NumPy array with one number per pixel") from error
    return result


def _float_map(path: Path, content: bytes) -> Disparities:
    head = _PFM.match(content)
    scale = float(head[3]) if head else 0.0
    if head is None or not scale:
        raise KernelError(f"{path}: not a portable float map with one channel (Pf)")
    width, height = int(head[1]), int(head[2])
    kind = np.dtype("<f4" if scale < 0 else ">f4")
    size = width * height * kind.itemsize
    # The numbers end the file and may start with bytes that are white space.
    end = len(content) - size
    if not size or end <= head.end() or not _PFM_END.fullmatch(content, head.end(), end):
        raise KernelError(
            f"{path}: {width} x {height} pixels need {size} bytes after the header, the file has "
            f"{len(content) - head.end() - 1}"
        )
    rows = np.frombuffer(content, kind, offset=end).reshape(height, width)
    result: Disparities = rows[::-1].astype(np.float64)
    return result


def _numbers(path: Path) -> NDArray[np.integer | np.floating]:
    """``[y, x]``: samples of a grey picture."""
    grey = read_grey(path)
    if grey is None:
        raise KernelError(f"{path}: the image must have one channel; this one is in colour")
    return grey


def sampled(values: NDArray[Value], shape: tuple[int, int]) -> NDArray[Value]:
    """``values[y, x]`` on a grid of ``shape``: the nearest value for each pixel of the grid."""
    rows, columns = (
        np.minimum(((np.arange(new) + 0.5) * old / new).astype(int), old - 1)
        for new, old in zip(shape, values.shape, strict=True)
    )
    return values[np.ix_(rows, columns)]


def stereo_errors(
    disparities: Disparities, truth: Disparities, mask: NDArray[np.bool_] | None = None
) -> dict[str, float]:
    """Errors over all pixels with known truth, or those of them in ``mask``.

    Returns:
        ``pixels``, their number; ``bad_1`` and ``bad_2``, the percentages off by more than 1.0 or
        2.0 pixels; in pixels ``mean``, the mean absolute error, and ``rms``, the root mean square.

    Raises:
        KernelError: different shapes; no pixel to compare.
    """
    for name, other in (("truth", truth), ("mask", mask)):
        if other is not None and other.shape != disparities.shape:
            raise KernelError(
                f"the {name} has {other.shape[1]} x {other.shape[0]} pixels, the disparities "
                f"{disparities.shape[1]} x {disparities.shape[0]}"
            )
    compared = np.isfinite(truth) if mask is None else np.isfinite(truth) & mask
    if not compared.any():
        raise KernelError("the true disparity of no pixel is known")
    off = np.abs(disparities - truth)[compared]
    return {
        "pixels": int(compared.sum()),
        "bad_1": float(100 * (off > 1).mean()),
        "bad_2": float(100 * (off > 2).mean()),
        "mean": float(off.mean()),
        "rms": float(np.sqrt((off * off).mean())),
    }
