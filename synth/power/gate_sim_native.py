"""Python interface of the simulator of netlists (``gate_sim.cpp``), compiled at its first use."""

import ctypes
from collections.abc import Callable
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint64
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from support.native import compile_library

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


@cache
def simulator() -> Callable[..., int]:
    """The simulator's function, compiled if there is no cached library.

    Raises:
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    function = compile_library("power", _SOURCE, ("-std=c++17", "-O2")).vip_gate_sim
    function.restype = c_int64
    return lambda *arguments: int(function(*arguments))
