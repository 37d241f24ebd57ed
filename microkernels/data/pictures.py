"""Pictures from files: photographs, and pictures whose samples are numbers, such as masks.

All user pictures are read here, with all bits of their samples, upright (by their EXIF
orientation), without alpha, and with their palette's colours.
"""

import re
import sys
import warnings
from collections.abc import Callable
from importlib.resources import as_file, files
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements
from support.extras import need, together
from support.files import read_bytes

#: ``[y, x, rgb]`` in grey levels, 0 to 255; fractional if samples have more than 8 bits.
Photograph = NDArray[np.uint8 | np.float32]
#: Maximum pixels of a picture; processing takes about 30 bytes per pixel.
MAX_PIXELS = 1 << 24
#: Separators of words in a portable map's header: white space and comments.
HEADER_GAP = rb"(?:\s|#[^\r\n]*[\r\n])+"

_MAX_BYTES = 1 << 28
_LEVELS = 255
_DEEPEST = (1 << 16) - 1
#: Bits per number in 16-bit samples, as cameras produce them.
_DEPTHS = (8, 10, 12, 14, 16)
#: Pillow's names of the supported formats.
_FORMATS = ("PNG", "JPEG", "PPM", "BMP", "TIFF", "WEBP", "GIF")
#: Pillow's modes with at most 8 bits per sample -> grey or RGB.
_MODES = {"1": "1", "L": "L", "LA": "L", "RGB": "RGB"} | dict.fromkeys(
    ("CMYK", "P", "PA", "RGBA", "RGBX", "YCbCr"), "RGB"
)
#: Pillow's layouts with few bits per sample, which it multiplies by this factor.
_SPREAD = {"L;2": 85, "L;4": 17}
#: Pillow takes the more significant bytes of layouts with 16 bits per sample; in the other byte
#: order those are the less significant ones.
_OTHER = {"B": "L", "L": "B", "N": "B" if sys.byteorder == "little" else "L"}
#: Layouts that libtiff has converted to the machine's byte order.
_NATIVE = {"F;32BF": "F;32NF", "I;16BS": "I;16NS", "I;32BS": "I;32NS"}
#: Tags of TIFF; planar channels.
_BITS, _PHOTOMETRIC, _PLANES, _ORIENTATION = 258, 262, 284, 274
_APART = 2
_TURNS: dict[int, Callable[[NDArray[Any]], NDArray[Any]]] = {
    1: lambda pixels: pixels,
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: pixels[::-1, ::-1],
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: pixels.swapaxes(0, 1),
    6: lambda pixels: np.rot90(pixels, -1),
    7: lambda pixels: pixels[::-1, ::-1].swapaxes(0, 1),
    8: lambda pixels: np.rot90(pixels),
}
_PORTABLE = re.compile(
    rb"P([2356])" + HEADER_GAP + rb"(\d{1,9})" + HEADER_GAP + rb"(\d{1,9})" + HEADER_GAP
    + rb"(\d{1,5})\s"
)  # fmt: skip


#: ``[y, x, channel]``: grey, or red, green and blue; whole numbers, or floating point in TIFF.
Samples = NDArray[np.integer | np.floating]


def read_content(path: Path) -> bytes:
    """The bytes of a picture or map file.

    Raises:
        KernelError: it can't be read; one line.
    """
    try:
        return read_bytes(path, _MAX_BYTES)
    except OSError as error:
        raise KernelError(f"{path}: can't be read: {error.strerror}") from error


def need_decoder(path: Path) -> None:
    """Check that what decodes a picture is installed.

    Raises:
        KernelError: the file can't be read.
        MissingExtraError: Pillow is not installed.
    """
    if not _PORTABLE.match(read_content(path)):
        need("PIL", "pictures")


def read_samples(path: Path) -> tuple[Samples, int]:
    """The samples of a picture as stored: PNG, JPEG, PGM, PPM, PBM, BMP, TIFF, WebP, or the first
    of a GIF; and the largest number that the format allows, from 1 (bitmap) to 65535, or 0 for
    floating point or more than 16 bits.

    Raises:
        KernelError: a file that is missing, damaged, too large, not a picture, or of a kind that
            would lose bits or colours; one line.
        MissingExtraError: Pillow is not installed.
    """
    content = read_content(path)
    if head := _PORTABLE.match(content):
        return _portable(path, head, content)
    need("PIL", "pictures")
    try:
        with warnings.catch_warnings(action="ignore"):
            return _decoded(path, content)
    except KernelError:
        raise
    except Exception as error:
        # Pillow's decoders raise many kinds of exceptions for damaged files.
        raise KernelError(f"{path}: not a readable image") from error


def read_grey(path: Path) -> Samples | None:
    """``[y, x]``: samples of a picture whose channels are equal; None: it is coloured. Errors as
    for :func:`read_samples`."""
    values, _ = read_samples(path)
    return None if (values != values[..., :1]).any() else values[..., 0]


def _check_size(path: Path, width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise KernelError(
            f"{path}: the image has {width} x {height} pixels; at most {MAX_PIXELS:,} are allowed"
        )


def _portable(path: Path, head: re.Match[bytes], content: bytes) -> tuple[Samples, int]:
    """A PGM or PPM, whose samples Pillow would scale."""
    kind, width, height, limit = (int(head[number]) for number in range(1, 5))
    _check_size(path, width, height)
    channels = 1 if kind in (2, 5) else 3
    count = width * height * channels
    try:
        if kind in (2, 3):
            words = re.sub(rb"#[^\r\n]*", b"", content[head.end() :]).split(maxsplit=count)
            flat = np.array(words[:count], np.int64)
        else:
            flat = np.frombuffer(content, ">u2" if limit > _LEVELS else "u1", count, head.end())
        if flat.size != count or not 0 <= flat.min() <= flat.max() <= limit <= _DEEPEST:
            raise ValueError
    except ValueError as error:
        raise KernelError(f"{path}: not a readable image") from error
    values = flat.astype(np.uint16).reshape(height, width, channels)
    return values, limit


def _decoded(path: Path, content: bytes) -> tuple[Samples, int]:
    with _opened(content) as image:
        _check_size(path, image.width, image.height)
        mode, layout = image.mode, _layout(image)
        tags: Any = getattr(image, "tag_v2", {})
        bits = max(tags.get(_BITS, (16 if mode.startswith("I;16") else 8,)))
        apart = tags.get(_PLANES) == _APART and bits > 8
        inverted = tags.get(_PHOTOMETRIC) == 0
    if apart:
        # Pillow mistakes such planes for 8-bit ones.
        raise KernelError(f"{path}: planar channels of {bits} bits can't be read")
    if mode.startswith("I;16"):
        limit = (1 << bits) - 1
        values = _pixels(content).astype(np.uint16)
        return (limit - values if inverted else values), limit
    if mode in ("I", "F"):
        return _pixels(content), 0
    if layout == "LA;16B":
        parts = _pixels(content, lambda _: "RGBA").astype(np.uint16)
        return (parts[..., :1] << 8) + parts[..., 1:2], _DEEPEST
    if re.fullmatch("RGB[AX]?;16[BLN]", layout):
        high = _pixels(content).astype(np.uint16)
        low = _pixels(content, lambda name: name[:-1] + _OTHER[name[-1]])
        return ((high << 8) + low)[..., :3], _DEEPEST
    if mode == "1":
        return _pixels(content).astype(np.uint8), 1
    if mode in _MODES and ";16" not in layout:
        factor = _SPREAD.get(layout, 1)
        return _pixels(content, to=_MODES[mode]) // factor, _LEVELS // factor
    raise KernelError(
        f"{path}: a grey or RGB image is needed, not one of the kind {layout or mode}"
    )


def _opened(content: bytes) -> Any:
    from PIL import Image

    return Image.open(BytesIO(content), formats=_FORMATS)


def _layout(image: Any) -> str:
    """Pillow's name of the sample layout in a PNG or TIFF, such as ``RGB;16B``; "" for other
    formats."""
    if image.format not in ("PNG", "TIFF") or not image.tile:
        return ""
    args = image.tile[0].args
    return str(args if isinstance(args, str) else args[0])


def _pixels(
    content: bytes, change: Callable[[str], str] = lambda name: name, to: str = ""
) -> NDArray[Any]:
    """``[y, x, channel]``: upright pixels, as Pillow decodes them.

    Parameters:
        change: layout in the file -> layout to read it as.
        to: mode to convert the picture to; "": no conversion.
    """
    with _opened(content) as image:
        if _layout(image):
            image.tile = [
                tile._replace(args=_renamed(tile.codec_name, tile.args, change))
                for tile in image.tile
            ]
        image.load()
        pixels = np.asarray(image.convert(to) if to else image)
        turn = _TURNS.get(image.getexif().get(_ORIENTATION), _TURNS[1])
    return turn(pixels.reshape(*pixels.shape[:2], -1))


def _renamed(codec: str, args: Any, change: Callable[[str], str]) -> Any:
    name = args if isinstance(args, str) else args[0]
    if codec == "libtiff":
        name = _NATIVE.get(name, name)
    return change(name) if isinstance(args, str) else (change(name), *args[1:])


def read_photographs(*paths: Path) -> list[Photograph]:
    """Read photographs that belong together, in grey or colour.

    16-bit samples are taken as numbers of 8, 10, 12, 14 or 16 bits: the fewest that can represent
    the largest sample of all photographs. The largest such number is white.

    Raises:
        KernelError: as for :func:`read_samples`, or samples in floating point or of more than 16
            bits; one line.
        MissingExtraError: Pillow is not installed.
    """
    pictures = [read_samples(path) for path in paths]
    deep = (int(values.max()) for values, limit in pictures if limit == _DEEPEST)
    largest = max(deep, default=0)
    white = next(white for bits in _DEPTHS if (white := (1 << bits) - 1) >= largest)
    return [
        _photograph(path, values, white if limit == _DEEPEST else limit)
        for path, (values, limit) in zip(paths, pictures, strict=True)
    ]


def _photograph(path: Path, samples: Samples, white: int) -> Photograph:
    if not white:
        raise KernelError(
            f"{path}: a photograph must have whole numbers of at most 16 bits per sample, not "
            f"{samples.dtype}"
        )
    values: Photograph
    if _LEVELS % white:
        values = np.multiply(samples, _LEVELS / white, dtype=np.float32)
    else:
        values = (samples * (_LEVELS // white)).astype(np.uint8)
    return np.repeat(values, 3, axis=2) if values.shape[2] == 1 else values


def displayed(photograph: NDArray[np.integer | np.floating]) -> NDArray[np.uint8]:
    """A photograph with 8 bits per channel, for display."""
    levels: NDArray[np.uint8] = np.rint(photograph).astype(np.uint8)
    return levels


#: Width and height of the full photograph in pixels.
SIDE = 512


def need_photographs() -> None:
    """Check that the packages with photographs, and to read them, are installed.

    Raises:
        MissingExtraError: one is not.
    """
    with together():
        for package in ("skimage", "PIL"):
            need(package, "photographs")


def photograph(height: int, width: int) -> Elements:
    """The middle of the photograph, shrunk to height x width pixels (1..512 each), as 16-bit
    elements from 0 to 255.

    Raises:
        KernelError: a size outside its range.
        MissingExtraError: scikit-image or Pillow is not installed.
    """
    need_photographs()
    CHECK.within("height", height, 1, SIDE)
    CHECK.within("width", width, 1, SIDE)
    scale = min(SIDE // height, SIDE // width)
    with as_file(files("skimage") / "data" / "camera.png") as path:
        pixels = read_samples(path)[0][..., 0].astype(np.int64)
    top, left = (SIDE - height * scale) // 2, (SIDE - width * scale) // 2
    middle = pixels[top : top + height * scale, left : left + width * scale]
    blocks = middle.reshape(height, scale, width, scale)
    means: Elements = blocks.mean(axis=(1, 3))
    return means.astype(np.int16)
