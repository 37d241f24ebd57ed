"""Pictures from files: all bits of the samples, upright, and as photographs."""

import struct
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image, ImageOps

from microkernels.common.errors import KernelError
from microkernels.data.pictures import read_grey, read_photographs, read_samples

RANDOM = np.random.default_rng(2)
SHAPE = (5, 7)


def png(samples: np.ndarray, *, bits: int, colour: int) -> bytes:
    """A PNG whose rows use the filters in turns, written from the specification.

    Parameters:
        samples: ``[y, x, channel]``. bits: of a sample. colour: type of the specification.
    """
    height, width, channels = samples.shape
    if bits == 16:
        rows = samples.astype(">u2").view(np.uint8).reshape(height, -1)
    elif bits == 8:
        rows = samples.astype(np.uint8).reshape(height, -1)
    else:
        planes = (samples[..., 0, np.newaxis] >> np.arange(bits)[::-1]) & 1
        rows = np.packbits(planes.reshape(height, -1).astype(np.uint8), axis=1)
    step = max(1, bits * channels // 8)
    before, body = np.zeros(rows.shape[1], int), b""
    for number, row in enumerate(rows.astype(int)):
        left = np.concatenate([np.zeros(step, int), row])[: len(row)]
        corner = np.concatenate([np.zeros(step, int), before])[: len(row)]
        paeth = [
            min((a, b, c), key=lambda one: abs(a + b - c - one))
            for a, b, c in zip(left, before, corner, strict=True)
        ]
        kind = number % 5
        guess = (np.zeros(len(row), int), left, before, (left + before) // 2, paeth)[kind]
        body += bytes([kind]) + ((row - guess) % 256).astype(np.uint8).tobytes()
        before = row
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)),
        (b"IDAT", zlib.compress(body)),
        (b"IEND", b""),
    )
    parts = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def written(folder: Path, content: bytes, ending: str = ".png") -> Path:
    path = folder / f"picture{ending}"
    path.write_bytes(content)
    return path


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    target = BytesIO()
    image.save(target, format=kind, **options)
    return target.getvalue()


@pytest.mark.parametrize(
    ("bits", "colour", "channels", "seen"),
    [
        (16, 0, 1, 1),
        (16, 2, 3, 3),
        (16, 4, 2, 1),
        (16, 6, 4, 3),
        (8, 4, 2, 1),
        (8, 6, 4, 3),
        (8, 0, 1, 1),
        (4, 0, 1, 1),
        (2, 0, 1, 1),
        (1, 0, 1, 1),
    ],
)
def test_samples_of_png(tmp_path: Path, bits: int, colour: int, channels: int, seen: int) -> None:
    samples = RANDOM.integers(0, 1 << bits, (*SHAPE, channels))
    pixels, most = read_samples(written(tmp_path, png(samples, bits=bits, colour=colour)))
    assert most == (1 << bits) - 1
    np.testing.assert_array_equal(pixels, samples[..., :seen])


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize(
    ("kind", "channels", "photometric"),
    [
        ("u2", 1, "minisblack"),
        ("u2", 3, "rgb"),
        ("u2", 4, "rgb"),
        ("f4", 1, "minisblack"),
        ("i2", 1, "minisblack"),
        ("i4", 1, "minisblack"),
        ("u1", 1, "miniswhite"),
    ],
)
def test_samples_of_tiff(
    tmp_path: Path, order: str, compression: str | None, kind: str, channels: int, photometric: str
) -> None:
    """Pillow takes one byte of 16 bits of colour, and mistakes the order of bytes of others."""
    shape = (*SHAPE, channels) if channels > 1 else SHAPE
    values = RANDOM.integers(0, 256 if kind == "u1" else 30000, shape).astype(kind)
    target = BytesIO()
    more = {"extrasamples": ("unassalpha",)} if channels == 4 else {}
    tifffile.imwrite(
        target,
        values,
        photometric=photometric,
        compression=compression,
        byteorder=order,
        **more,
    )
    pixels, most = read_samples(written(tmp_path, target.getvalue(), ".tif"))
    assert most == {"u1": 255, "u2": 65535}.get(kind, 0)
    expected = values.reshape(*SHAPE, channels)[..., :3]
    np.testing.assert_array_equal(
        pixels, 255 - expected if photometric == "miniswhite" else expected
    )


def test_dark_tiff_of_16_bits_is_inverted(tmp_path: Path) -> None:
    values = RANDOM.integers(0, 65536, SHAPE).astype(np.uint16)
    target = BytesIO()
    tifffile.imwrite(target, values, photometric="miniswhite", byteorder="<")
    pixels, _ = read_samples(written(tmp_path, target.getvalue(), ".tif"))
    np.testing.assert_array_equal(pixels[..., 0], 65535 - values)


@pytest.mark.parametrize(
    ("head", "kind", "limit"),
    [
        (b"P5\n7 5\n60\n", "u1", 60),
        (b"P5 # grey\n7\r\n5 1023 ", ">u2", 1023),
        (b"P5 7 5 65535\n", ">u2", 65535),
        (b"P6\n# made\n# by hand\n7 5\n255\n", "u1", 255),
        (b"P6 7 5 4095\n", ">u2", 4095),
        (b"P2\n7 5 # columns, rows\n60\n", "", 60),
        (b"P3\n7 5\n1023\n", "", 1023),
    ],
)
def test_samples_of_portable_maps(tmp_path: Path, head: bytes, kind: str, limit: int) -> None:
    channels = 3 if head[:2] in (b"P3", b"P6") else 1
    values = RANDOM.integers(0, limit + 1, (*SHAPE, channels))
    text = b" # a comment\n".join(b" ".join(b"%d" % one for one in row.flat) for row in values)
    body = values.astype(kind).tobytes() if kind else text
    pixels, most = read_samples(written(tmp_path, head + body, ".pgm"))
    assert most == limit
    np.testing.assert_array_equal(pixels, values)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(10))
def test_pictures_are_turned_upright(tmp_path: Path, kind: str, orientation: int) -> None:
    image = Image.fromarray(RANDOM.integers(0, 256, (16, 24, 3)).astype(np.uint8))
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(image, kind, exif=exif)
    pixels, _ = read_samples(written(tmp_path, content))
    with Image.open(BytesIO(content)) as opened:
        expected = np.asarray(ImageOps.exif_transpose(opened))
    np.testing.assert_array_equal(pixels, expected)
    assert pixels.shape[:2] == ((24, 16) if 5 <= orientation <= 8 else (16, 24))


@pytest.mark.parametrize("orientation", range(2, 9))
def test_deep_pictures_are_turned_once(tmp_path: Path, orientation: int) -> None:
    values = RANDOM.integers(0, 65536, (*SHAPE, 3)).astype(np.uint16)
    target = BytesIO()
    tag = (274, "H", 1, orientation, True)
    tifffile.imwrite(target, values, photometric="rgb", extratags=[tag], metadata=None)
    pixels, _ = read_samples(written(tmp_path, target.getvalue(), ".tif"))
    turned = {2: np.fliplr, 3: lambda one: np.rot90(one, 2), 4: np.flipud} | {
        5: lambda one: one.swapaxes(0, 1),
        6: lambda one: np.rot90(one, -1),
        7: lambda one: np.rot90(one, 2).swapaxes(0, 1),
        8: np.rot90,
    }
    np.testing.assert_array_equal(pixels, turned[orientation](values))


def test_colours_of_a_palette_are_read(tmp_path: Path) -> None:
    """Of grey levels in a palette, the levels, not their numbers."""
    image = Image.fromarray(np.array([[0, 1, 2]], np.uint8), "P")
    image.putpalette([level for grey in (7, 50, 200) for level in (grey,) * 3])
    pixels = read_grey(written(tmp_path, encoded(image, "PNG")))
    assert pixels is not None
    assert pixels.tolist() == [[7, 50, 200]]
    (photograph,) = read_photographs(written(tmp_path, encoded(image, "GIF"), ".gif"))
    assert photograph.tolist() == [[[7] * 3, [50] * 3, [200] * 3]]


@pytest.mark.parametrize(
    ("largest", "white"),
    [
        (200, 255),
        (256, 1023),
        (1023, 1023),
        (4000, 4095),
        (16000, 16383),
        (16384, 65535),
        (65535, 65535),
    ],
)
def test_white_is_the_largest_number_of_the_depth(tmp_path: Path, largest: int, white: int) -> None:
    """Cameras leave numbers of 10 or 12 bits in samples of 16, of both photographs alike."""
    samples = np.array([[[0, 40, 80], [7, 9, largest]]])
    dark = np.array([[[0, 40, 80], [7, 9, 11]]])
    paths = [tmp_path / "left.png", tmp_path / "right.png"]
    for path, one in zip(paths, (samples, dark), strict=True):
        path.write_bytes(png(one, bits=16, colour=2))
    left, right = read_photographs(*paths)
    np.testing.assert_allclose(left, samples * 255 / white, rtol=1e-6)
    np.testing.assert_allclose(right, dark * 255 / white, rtol=1e-6)
    assert left.dtype == (np.uint8 if white == 255 else np.float32)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_white_of_few_bits(tmp_path: Path, bits: int) -> None:
    white = (1 << bits) - 1
    samples = np.array([[[0], [1], [white]]])
    (pixels,) = read_photographs(written(tmp_path, png(samples, bits=bits, colour=0)))
    assert pixels[..., 0].tolist() == [[0, 255 // white, 255]]
    assert pixels.shape == (1, 3, 3)


def image(mode: str) -> bytes:
    return encoded(Image.new(mode, (4, 3)), "TIFF")


def tiff(values: np.ndarray, **options: object) -> bytes:
    target = BytesIO()
    tifffile.imwrite(target, values, **options)
    return target.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (image("LAB"), "grey or RGB image is needed, not one of the kind LAB"),
        (image("F"), "whole numbers of at most 16 bits per sample, not float32"),
        (image("I"), "whole numbers of at most 16 bits per sample, not int32"),
        (
            tiff(np.zeros((3, 5, 7), np.uint16), photometric="rgb", planarconfig="separate"),
            "planar channels of 16 bits",
        ),
        (
            tiff(np.zeros((5, 7, 4), np.uint16), photometric="separated"),
            "not one of the kind CMYK;16L",
        ),
        (tiff(np.zeros((5, 7, 3), np.float32), photometric="rgb"), "not a readable image"),
        (b"P5\n2 2\n255\nabc", "not a readable image"),
        (b"P5\n2 2\n60\nabcd", "not a readable image"),
        (b"P5\n0 2\n255\n", "not a readable image"),
        (b"P2\n2 2\n255\n1 2 3", "not a readable image"),
        (b"P2\n2 2\n255\n1 2 3 x", "not a readable image"),
        (b"P2\n2 2\n255\n1 2 3 -4", "not a readable image"),
        (b"P2\n2 2\n99999\n1 2 3 4", "not a readable image"),
        (b"P5\n5000 5000\n255\n", "5000 x 5000 pixels"),
        (b"", "not a readable image"),
    ],
)
def test_other_pictures_are_refused_in_one_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(KernelError) as error:
        read_photographs(path)
    assert message in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)
