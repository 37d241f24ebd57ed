"""Python interface of the simulator of netlists (``gate_sim.cpp``), compiled at its first use."""

import ctypes
import hashlib
import os
import shlex
import subprocess
from collections.abc import Callable
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint64
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isa.support.processes import run_tool
from isa.support.scratch import owned_folder
from synth.errors import SynthesisError
from synth.physical.yosys import cache_folder

__all__ = ["WHOLE_EDGE", "Array", "Arrays", "Cells", "Counts", "Macros", "Stimulus", "simulator"]

_SOURCE = Path(__file__).with_name("gate_sim.cpp")
#: Weight of one edge of an output in ``Counts.causes``.
WHOLE_EDGE = 60

Array = npt.NDArray[Any]


class Cells(ctypes.Structure):
    """Cells in the order of evaluation; see ``gate_sim.cpp``."""

    _fields_ = (
        ("count", c_int32),
        ("input_start", POINTER(c_int32)),
        ("inputs", POINTER(c_int32)),
        ("output_start", POINTER(c_int32)),
        ("outputs", POINTER(c_int32)),
        ("truth", POINTER(c_uint64)),
        ("needed", POINTER(c_int32)),
        ("state", POINTER(c_int32)),
        ("enable", POINTER(c_int32)),
        ("next", POINTER(c_uint64)),
        ("bins", POINTER(c_int32)),
    )


class Macros(ctypes.Structure):
    """Memories."""

    _fields_ = (("count", c_int32), ("shape", POINTER(c_int32)), ("pins", POINTER(c_int32)))


class Stimulus(ctypes.Structure):
    """Inputs and expected outputs."""

    _fields_ = (
        ("nets", c_int32),
        ("cycles", c_int32),
        ("checked_from", c_int32),
        ("counted_from", c_int32),
        ("counted_to", c_int32),
        ("inputs", c_int32),
        ("outputs", c_int32),
        ("input_nets", POINTER(c_int32)),
        ("output_nets", POINTER(c_int32)),
        ("input_values", POINTER(c_uint8)),
        ("output_values", POINTER(c_uint8)),
        ("values", POINTER(c_uint8)),
    )


class Counts(ctypes.Structure):
    """Counted activity."""

    _fields_ = (
        ("toggles", POINTER(c_uint64)),
        ("states", POINTER(c_uint64)),
        ("causes", POINTER(c_uint64)),
        ("accesses", POINTER(c_uint64)),
    )


class Arrays:
    """Arrays that a structure points to; they live as long as this object."""

    def __init__(self) -> None:
        self._kept: list[Array] = []

    def __call__(self, values: Any, kind: Any) -> Any:
        array = np.ascontiguousarray(values, dtype=np.dtype(kind))
        # An empty array has no place to point to.
        self._kept.append(array if array.size else np.zeros(1, dtype=np.dtype(kind)))
        return self._kept[-1].ctypes.data_as(POINTER(kind))


@lru_cache(maxsize=1)
def simulator() -> Callable[..., int]:
    """The simulator's function, compiled if there is no cached library.

    Raises:
        SynthesisError: there is no C++ compiler, or it fails.
    """
    try:
        compiler = shlex.split(os.environ.get("CXX", "")) or ["c++"]
    except ValueError as error:
        raise SynthesisError(f"CXX can't be understood: {error}") from None
    command = [*compiler, "-std=c++17", "-O2", "-shared", "-fPIC", str(_SOURCE), "-o"]
    content = "\0".join(command).encode() + _SOURCE.read_bytes()
    target = cache_folder() / f"gate_sim-{hashlib.sha256(content).hexdigest()[:20]}.so"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with owned_folder(target.parent, ".running-") as folder:
            built = folder / target.name
            try:
                done = run_tool(
                    [*command, str(built)],
                    # A compiler that is killed leaves files.
                    env={**os.environ, "TMPDIR": str(folder)},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                )
            except OSError:
                raise SynthesisError(
                    f"power needs a C++ compiler: {compiler[0]!r} is not on the path"
                ) from None
            if done.returncode:
                said = done.stderr.decode(errors="replace").strip() or "it says nothing"
                raise SynthesisError(f"{compiler[0]} fails: {said.splitlines()[0]}")
            built.replace(target)
    function = ctypes.CDLL(str(target)).vip_gate_sim
    function.restype = c_int64
    return lambda *arguments: int(function(*arguments))
