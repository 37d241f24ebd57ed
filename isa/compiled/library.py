"""The compiled simulator's library, and the structures that it shares with Python."""

import ctypes
from collections.abc import Mapping
from ctypes import CFUNCTYPE, POINTER, c_int16, c_int32, c_uint8, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from isa.table import REGISTERS
from support.native import compile_library
from support.schema import U8, U16, C, Record, Signed, declarations

from .rows import constants, hazard_rows, rows

#: Files in C++, that of the library first.
SOURCES = tuple(
    Path(__file__).with_name(name)
    for name in ("engine.cpp", "engine.h", "hazards.h", "semantics.h", "workspace.h")
)
_FLAGS = ("-std=c++20", "-O3", "-Wall", "-Wextra")

#: Called with a special row's number and FX: stores the row's results for all elements in an
#: engine's ``results``. Returns 0, or another value on failure.
Evaluate = CFUNCTYPE(c_int32, c_uint32, c_uint64)
Evaluate.__name__ = "Evaluate"

_Bytes = Annotated[Any, C(POINTER(c_uint8))]
_Counts = Annotated[Any, C(POINTER(c_uint64))]


class Descriptor(Record):
    """A workspace's descriptor as laid out in memory; without pixels, none is declared."""

    image: int
    window: int
    width: U16
    height: U16
    pixel_bytes: U16
    output_width: U16
    output_height: U16
    kernel: U8
    stride: U8
    padding: U8
    rest: Annotated[Any, C(c_uint8 * 3)]


class Workspace(Descriptor):
    """The same in an engine; see ``workspace.h``."""


class Operation(Record):
    """An instruction word, decoded.

    Attributes:
        row: of the instruction table; beyond the table: not an instruction of the engine.
        a, b, c: registers, by purpose: for a scalar instruction, its result and two operands; a
            branch for operands in ``b`` and ``c``; a vector instruction for its result and
            operands; a setting for an operand in ``b``; a transfer of the scratchpad for
            scratchpad, memory and length, of a register for register and memory.
        constant: of a branch: the target.
    """

    row: U16
    a: U8
    b: U8
    c: U8
    constant: Signed


_Operations = Annotated[Any, C(POINTER(Operation))]


class Engine(Record):
    """State of an engine.

    Attributes:
        memory, held: of a :class:`isa.image.Mapping`; ``memory_bytes`` of it can be reached,
            ``address_space`` can be named. file: of the image.
        program: ``words`` operations. visits, saturated: a number for each word; ``saturated`` may
            be null.
        results: for each special row and FX results of all elements, or null.
        log: the log of hazards, or null. followed: the program with the words that it sees marked.
    """

    registers: Annotated[Any, C(c_uint64 * REGISTERS)]
    register_width: int
    vl: int
    mr: int
    fx: int
    max_vl: int
    max_mr: int
    unaligned: int
    scratchpad: _Bytes
    scratchpad_bytes: int
    memory: _Bytes
    held: _Bytes
    memory_bytes: int
    address_space: int
    file: Signed
    program: _Operations
    words: int
    visits: _Counts
    saturated: _Counts
    results: Annotated[Any, C(POINTER(POINTER(c_int16)))]
    evaluate: Annotated[Any, C(Evaluate)]
    pc: Signed
    log: Annotated[Any, C(c_void_p)]
    followed: _Operations
    workspace: Workspace


class FoundHazard(Record):
    """A use that comes too early, as :class:`isa.timing.Hazard`; ``distance`` and ``needed`` say
    nothing where an instruction overlaps its own operand."""

    pc: Signed
    what: Signed
    address: Signed
    other: Signed
    distance: Signed
    needed: Signed
    times: Signed


def headers() -> Mapping[str, str]:
    """What :data:`SOURCES` include of the instruction table and of the structures here."""
    return {
        "rows.inc": rows(),
        "hazard_rows.inc": hazard_rows(),
        "constants.inc": constants(),
        "descriptor.inc": declarations(Descriptor),
        "structures.inc": declarations(Operation, Engine, FoundHazard),
    }


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
        generated=headers(),
    )
    simulator.vip_engine_run.argtypes = (POINTER(Engine), c_uint64)
    simulator.vip_engine_run.restype = c_uint32
    simulator.vip_hazards_open.restype = c_void_p
    simulator.vip_hazards_close.argtypes = (c_void_p,)
    simulator.vip_hazards_close.restype = None
    simulator.vip_hazards_count.argtypes = (c_void_p,)
    simulator.vip_hazards_count.restype = c_uint64
    simulator.vip_hazards_copy.argtypes = (c_void_p, POINTER(FoundHazard))
    simulator.vip_hazards_copy.restype = None
    return simulator
