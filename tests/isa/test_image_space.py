"""A DRAM image on a file system that is full: an error, never a bus error."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from isa.image import DramImage, ImageError

ROOT = Path(__file__).resolve().parent.parent.parent
#: Space of the fixture's file system.
SPACE = 1 << 20


def test_writing_more_than_fits_is_refused(small: Path) -> None:
    with DramImage(1 << 33, small / "image") as image:
        image.write(1 << 32, b"first")
        with pytest.raises(ImageError, match=r"image can't take 2097152 more bytes: No space left"):
            image.write(0, bytes(2 * SPACE))
        assert image.read(1 << 32, 5) == b"first"
        # Reading needs no space, though nothing was ever written there.
        assert image.read(1 << 20, 8 * SPACE) == bytes(8 * SPACE)


def test_a_view_that_could_not_be_written_is_refused(small: Path) -> None:
    with DramImage(1 << 33, small / "image") as image:
        view = image.array(64, SPACE // 4, np.uint8)
        view[:] = 7
        assert image.read(64, 4) == b"\7\7\7\7"
        with pytest.raises(ImageError, match="can't take 4194304 more bytes: No space left"):
            image.array(0, 4 * SPACE, np.uint8)


def test_a_file_that_does_not_fit_is_refused(small: Path, tmp_path: Path) -> None:
    (tmp_path / "contents").write_bytes(bytes(2 * SPACE))
    with DramImage(1 << 33, small / "image") as image:
        with pytest.raises(ImageError, match="can't take 2097152 more bytes: No space left"):
            image.load_file(0, tmp_path / "contents")


def test_commands_say_so_in_a_line(small: Path, tmp_path: Path) -> None:
    (tmp_path / "program.s").write_text("halt\n")
    (tmp_path / "contents").write_bytes(bytes(2 * SPACE))
    command = [sys.executable, "-c", "from vip.cli.app import main; main()", "run", "program.s"]
    done = subprocess.run(
        [*command, "--memory", "contents"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(small), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.endswith("can't take 2097152 more bytes: No space left on device")
    assert list(small.iterdir()) == []
