"""The DRAM image: contents, sharing between processes, files, limits."""

import mmap
import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from isa.image import MAX_IMAGE_BYTES, DramImage, ImageError


def test_reads_zeros_then_what_was_written() -> None:
    with DramImage(100) as image:
        assert image.size == 100
        assert image.read(0, 100) == bytes(100)
        image.write(97, b"abc")
        image.write(3, bytearray(b"xy"))
        image.write(10, memoryview(np.array([1, 2], "<u2")))
        assert image.read(96, 4) == b"\0abc"
        assert image.read(2, 4) == b"\0xy\0"
        assert image.read(10, 4) == b"\1\0\2\0"
        assert image.read(100, 0) == b""
        image.write(100, b"")


@pytest.mark.parametrize(("address", "length"), [(98, 3), (100, 1), (-1, 1), (1 << 70, 1), (0, -1)])
def test_refuses_what_is_outside(address: int, length: int, tmp_path: Path) -> None:
    with DramImage(100) as image:
        message = rf"^{length} bytes at address {address:#x} are outside the image of 100 bytes$"
        with pytest.raises(ImageError, match=message):
            image.read(address, length)
        with pytest.raises(ImageError, match=message):
            image.save_file(address, length, tmp_path / "out")
        if length > 0:
            with pytest.raises(ImageError, match=message):
                image.write(address, bytes(length))
            with pytest.raises(ImageError, match=message):
                image.array(address, length, np.uint8)
        assert image.read(0, 100) == bytes(100)
    assert list(tmp_path.iterdir()) == []


def test_array_is_a_view() -> None:
    with DramImage(64) as image:
        view = image.array(3, (2, 3), "<i2")
        view[1, 2] = -2
        assert image.read(13, 2) == b"\xfe\xff"
        image.write(3, b"\x34\x12")
        assert view[0, 0] == 0x1234
        assert image.array(64, (0, 5), np.int64).shape == (0, 5)
        assert image.array(0, 8, np.uint64).shape == (8,)
        with pytest.raises(ImageError, match="12 bytes at address 0x3d"):
            image.array(61, (2, 3), "<i2")
        with pytest.raises(ImageError, match="negative size"):
            image.array(0, (-1, -2), np.uint8)


@pytest.mark.parametrize("size", [0, -5, MAX_IMAGE_BYTES + 1, 2.5])
def test_refuses_size(size: int) -> None:
    with pytest.raises(ImageError, match=f"from 1 to {MAX_IMAGE_BYTES}, not {size}"):
        DramImage(size)


def test_eight_gibibytes_take_only_what_is_written() -> None:
    with DramImage(MAX_IMAGE_BYTES) as image:
        image.write(MAX_IMAGE_BYTES - 3, b"end")
        assert image.read(MAX_IMAGE_BYTES - 4, 4) == b"\0end"
        assert image.path.stat().st_size == MAX_IMAGE_BYTES
        assert image.path.stat().st_blocks * 512 < 1 << 24


def test_temporary_file_goes_with_close_or_with_the_object() -> None:
    image = DramImage(16)
    path = image.path
    assert path.is_file()
    view = image.array(0, 16, np.uint8)
    image.close()
    image.close()
    assert not path.exists()
    view[3] = 7
    assert view[3] == 7
    with pytest.raises(ImageError, match="is closed"):
        image.read(0, 1)
    other = DramImage(16)
    path = other.path
    del other
    assert not path.exists()


def test_named_file_stays_and_is_taken_up_again(tmp_path: Path) -> None:
    path = tmp_path / "dram"
    with DramImage(8, path) as image:
        assert image.path == path
        image.write(2, b"hi")
    assert path.read_bytes() == b"\0\0hi\0\0\0\0"
    with DramImage(12, path) as image:
        assert image.read(0, 12) == b"\0\0hi" + bytes(8)
    with pytest.raises(ImageError, match="has 12 bytes, more than the image's 11"):
        DramImage(11, path)
    with pytest.raises(ImageError, match="can't hold an image of 8 bytes"):
        DramImage(8, tmp_path / "none" / "dram")


def _increment(path: str) -> None:
    with Path(path).open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[5] = mapped[4] + 1


def test_another_process_maps_the_same_bytes() -> None:
    with DramImage(4096) as image:
        image.write(4, b"\x29")
        process = multiprocessing.get_context("spawn").Process(
            target=_increment, args=(str(image.path),)
        )
        process.start()
        process.join(60)
        assert image.read(4, 2) == b"\x29\x2a"


def test_files(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"contents")
    target.write_bytes(b"old")
    with DramImage(20) as image:
        assert image.load_file(12, source) == 8
        assert image.read(10, 10) == b"\0\0contents"
        with pytest.raises(ImageError, match="8 bytes at address 0xd are outside"):
            image.load_file(13, source)
        image.save_file(11, 5, target)
        assert target.read_bytes() == b"\0cont"
        assert sorted(tmp_path.iterdir()) == [source, target]
        with pytest.raises(ImageError, match=r"can't read .*missing"):
            image.load_file(0, tmp_path / "missing")
        with pytest.raises(ImageError, match=r"can't write .*: "):
            image.save_file(0, 5, tmp_path / "missing" / "file")
        (tmp_path / "folder").mkdir()
        with pytest.raises(ImageError, match="can't write"):
            image.save_file(0, 5, tmp_path / "folder")
        assert sorted(tmp_path.iterdir()) == [tmp_path / "folder", source, target]


def test_blocks_are_those_that_hold_something() -> None:
    with DramImage(MAX_IMAGE_BYTES) as image:
        assert list(image.blocks()) == []
        image.write(3 << 30, b"\x01")
        image.write(MAX_IMAGE_BYTES - 1, b"\x02")
        image.write(5 << 30, b"\x00")
        (first, one), (last, two) = image.blocks()
        assert (first, last + len(two)) == (3 << 30, MAX_IMAGE_BYTES)
        assert (one[0], two[-1]) == (1, 2)


def test_differences_are_found_wherever_they_are() -> None:
    with DramImage(100_001) as one, DramImage(100_001) as other, DramImage(5) as small:
        assert list(one.differences(other)) == []
        one.write(0, b"\x01\x02")
        other.write(0, b"\x01\x03")
        other.write(100_000, b"\x07")
        assert list(one.differences(other)) == [1, 100_000]
        assert list(other.differences(one)) == [1, 100_000]
        with pytest.raises(ImageError, match="images of 100001 and 5 bytes can't be compared"):
            list(one.differences(small))
    with pytest.raises(ImageError, match="closed"):
        list(one.blocks())
