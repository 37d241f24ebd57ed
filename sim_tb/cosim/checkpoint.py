"""Checkpoints of jobs with several launches on a chip: an interrupted run goes on where it was."""

import json
import struct
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import NamedTemporaryFile

from isa.image import DramImage

from .chip import ChipResult

__all__ = ["Checkpoint"]

#: Address and length of a block of the DRAM, in front of its bytes.
_BLOCK = struct.Struct("<QQ")
#: Seconds of simulation for which a checkpoint is worth its time.
_SECONDS = 20.0


class Checkpoint:
    """The contents of the DRAM and the results of the launches that have ended.

    Parameters:
        folder: is made when the first checkpoint is written. What it holds of another job, or of a
            version of the machine that is not this one, is ignored.
        key: differs with everything that decides the results: machine, programs and data.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self._file = folder / f"{key}.checkpoint"
        self._written = time.monotonic()

    def load(self, image: DramImage) -> dict[str, ChipResult]:
        """Put the contents of the DRAM into ``image``, all zero so far.

        Returns:
            Results of the launches that need not be run, by name; empty: there is no checkpoint.

        Raises:
            isa.image.ImageError: the image is smaller than the one that was saved.
        """
        try:
            with self._file.open("rb") as file:
                results = json.loads(file.readline())
                while head := file.read(_BLOCK.size):
                    address, length = _BLOCK.unpack(head)
                    image.write(address, file.read(length))
        except FileNotFoundError:
            return {}
        return {name: ChipResult(**result, faults=()) for name, result in results.items()}

    def save(self, image: DramImage, results: dict[str, ChipResult]) -> None:
        """Write a checkpoint after a launch without faults, if the last one is some time ago. It
        replaces the one before as a whole.

        Raises:
            OSError: the file can't be written.
        """
        if time.monotonic() < self._written + _SECONDS:
            return
        found = {name: asdict(result) for name, result in results.items()}
        for result in found.values():
            del result["faults"]
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=self._file.parent, suffix=".tmp", delete=False) as file:
            written = Path(file.name)
            try:
                file.write(json.dumps(found).encode() + b"\n")
                for address, block in image.blocks():
                    file.write(_BLOCK.pack(address, len(block)) + block)
                written.replace(self._file)
            except BaseException:
                written.unlink(missing_ok=True)
                raise
        self._written = time.monotonic()

    def remove(self) -> None:
        """Delete the file: the run has ended."""
        with suppress(FileNotFoundError):
            self._file.unlink()
