"""Checkpoints of jobs with several launches on a chip, from which an interrupted run resumes."""

import hashlib
import json
import struct
import time
import warnings
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from isa.image import DramImage
from isa.run import EngineEnd, RunResult
from support.files import write_atomically

#: Increases with each change of the file format or of :class:`isa.run.RunResult`.
_FORMAT = 4
#: Address and length of a block of the DRAM, stored before its bytes.
_BLOCK = struct.Struct("<QQ")
#: Seconds of simulation after which a checkpoint is worth the time to write it.
_SECONDS = 20.0
#: Fields stored for a halted engine, besides its counters.
_OF_ENGINE = ("pe", "vault", "slot", "cycles", "elapsed_cycles")


class Checkpoint:
    """A file with the contents of the DRAM and the results of completed launches.

    Parameters:
        file: created with the first checkpoint. A file that is damaged, or that belongs to another
            run or version, counts as missing and is replaced.
        key: a digest of everything that decides the results: machine, programs and data.
    """

    def __init__(self, file: Path, key: str) -> None:
        self._file = file
        self._key = key
        self._written = time.monotonic()

    def load(self, image: DramImage) -> dict[str, RunResult]:
        """Restore the contents of the DRAM into ``image``, which is all zero.

        Returns:
            Results of the completed launches, by name; empty if there is no checkpoint, and
            ``image`` is then unchanged.
        """
        try:
            head, _, body = self._file.read_bytes().partition(b"\n")
            state = json.loads(head)
            if (state["format"], state["key"]) != (_FORMAT, self._key):
                return {}
            if state["digest"] != hashlib.sha256(body).hexdigest():
                return {}
            results = {name: _result(**result) for name, result in state["results"].items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}
        at = 0
        while at < len(body):
            address, length = _BLOCK.unpack_from(body, at)
            at += _BLOCK.size
            image.write(address, body[at : at + length])
            at += length
        return results

    def save(self, image: DramImage, results: dict[str, RunResult]) -> None:
        """Write a checkpoint after a launch without faults, unless the last one is recent. It
        replaces the previous one atomically. A failure to write it is only a warning, as the run
        does not need it."""
        if time.monotonic() < self._written + _SECONDS:
            return
        body = b"".join(
            part
            for address, block in image.blocks()
            for part in (_BLOCK.pack(address, len(block)), block)
        )
        head = {
            "format": _FORMAT,
            "key": self._key,
            "digest": hashlib.sha256(body).hexdigest(),
            "results": {name: _stored(result) for name, result in results.items()},
        }
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._file, json.dumps(head).encode() + b"\n" + body)
        except OSError as error:
            warnings.warn(f"no checkpoint could be written: {error}", stacklevel=2)
        self._written = time.monotonic()

    def remove(self) -> None:
        """Delete the file."""
        with suppress(OSError):
            self._file.unlink()


def _stored(result: RunResult) -> dict[str, object]:
    """``result`` as JSON data; its engines have halted, and their memories were not read."""
    engines = [
        {name: getattr(end, name) for name in _OF_ENGINE} | {"counters": dict(end.counters)}
        for end in result.engines
    ]
    return asdict(replace(result, engines=())) | {"engines": engines}


def _result(engines: list[dict[str, Any]], **result: Any) -> RunResult:
    ends = tuple(EngineEnd(state="halted", **end) for end in engines)
    return RunResult(engines=ends, **result)
