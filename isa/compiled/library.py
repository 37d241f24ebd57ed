"""The compiled simulator's library, and the structures that it shares with Python."""

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_int16,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_void_p,
)
from ctypes import c_uint64 as u64
from functools import cache
from pathlib import Path

from isa.table import REGISTERS
from support.native import compile_library

from .rows import constants, hazard_rows, rows

__all__ = ["SOURCES", "Engine", "Evaluate", "FoundHazard", "Operation", "library"]

#: Files in C++, that of the library first.
SOURCES = tuple(
    Path(__file__).with_name(name)
    for name in ("engine.cpp", "engine.h", "hazards.h", "semantics.h", "workspace.h")
)
_FLAGS = ("-std=c++20", "-O3", "-Wall", "-Wextra")

_PIXELS = ("width", "height", "pixel_bytes", "output_width", "output_height")

#: Called with the number of a special row and FX; see ``engine.h``.
Evaluate = CFUNCTYPE(c_int32, c_uint32, u64)


class Declared(ctypes.Structure):
    """The declared workspace; see ``workspace.h``."""

    _fields_ = (
        ("image", u64),
        ("window", u64),
        *((name, c_uint16) for name in _PIXELS),
        *((name, c_uint8) for name in ("kernel", "stride", "padding")),
        ("rest", c_uint8 * 3),
    )


class Operation(ctypes.Structure):
    """A decoded word; see ``engine.h``."""

    _fields_ = (
        ("row", c_uint16),
        ("a", c_uint8),
        ("b", c_uint8),
        ("c", c_uint8),
        ("constant", c_int64),
    )


class Engine(ctypes.Structure):
    """State of an engine; see ``engine.h``."""

    _fields_ = (
        ("registers", u64 * REGISTERS),
        ("register_width", u64),
        ("vl", u64),
        ("mr", u64),
        ("fx", u64),
        ("max_vl", u64),
        ("max_mr", u64),
        ("unaligned", u64),
        ("scratchpad", POINTER(c_uint8)),
        ("scratchpad_bytes", u64),
        ("memory", POINTER(c_uint8)),
        ("held", POINTER(c_uint8)),
        ("memory_bytes", u64),
        ("address_space", u64),
        ("file", c_int64),
        ("program", POINTER(Operation)),
        ("words", u64),
        ("visits", POINTER(u64)),
        ("saturated", POINTER(u64)),
        ("results", POINTER(POINTER(c_int16))),
        ("evaluate", Evaluate),
        ("pc", c_int64),
        ("log", c_void_p),
        ("followed", POINTER(Operation)),
        ("workspace", Declared),
    )


class FoundHazard(ctypes.Structure):
    """A hazard; see ``hazards.h``."""

    _fields_ = (
        ("pc", c_int64),
        ("what", c_int64),
        ("address", c_int64),
        ("other", c_int64),
        ("distance", c_int64),
        ("needed", c_int64),
        ("times", c_int64),
    )


@cache
def library() -> ctypes.CDLL:
    """The library, compiled at the first use: under half a minute.

    Raises:
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    simulator = compile_library(
        "simulator",
        SOURCES[0],
        _FLAGS,
        headers=SOURCES[1:],
        generated={
            "rows.inc": rows(),
            "hazard_rows.inc": hazard_rows(),
            "constants.inc": constants(),
        },
    )
    simulator.vip_engine_run.argtypes = (POINTER(Engine), u64)
    simulator.vip_engine_run.restype = c_uint32
    simulator.vip_hazards_open.restype = c_void_p
    simulator.vip_hazards_close.argtypes = (c_void_p,)
    simulator.vip_hazards_close.restype = None
    simulator.vip_hazards_count.argtypes = (c_void_p,)
    simulator.vip_hazards_count.restype = u64
    simulator.vip_hazards_copy.argtypes = (c_void_p, POINTER(FoundHazard))
    simulator.vip_hazards_copy.restype = None
    return simulator
