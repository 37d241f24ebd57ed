"""Operations of the simulated chip's host, as they are handed to the simulator and back."""

import ctypes
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from ctypes import POINTER, byref, c_uint8, c_uint32, c_uint64
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any

__all__ = ["ChipHostModel", "Kind", "Operation", "Outcome", "Result"]


class Kind(IntEnum):
    """What an operation does: the numbers of ``VipChipOperation`` in chip_host.h."""

    RESET = 0
    RUN = 1
    READ_REGISTER = 2
    WRITE_REGISTERS = 3
    READ_MEMORY = 4
    WRITE_MEMORY = 5


class Outcome(IntEnum):
    """How an operation ended: the numbers of ``VipChipResult`` in chip_host.h."""

    DONE = 0
    LATE = 1
    VIOLATION = 2


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation.

    Attributes:
        kind: what to do.
        address: of the first byte.
        count: cycles of RESET and RUN; bytes of the others.
        data: bytes to write.
        stop: RUN ends with the interrupt.
        limit: cycles after which an access is late; 0: never.
        outer: the access is made by cocotbext-axi's managers, not by the model in C++.
    """

    kind: Kind
    address: int = 0
    count: int = 0
    data: bytes = b""
    stop: bool = False
    limit: int = 0
    outer: bool = False

    def to_json(self) -> bytes:
        """The operation as JSON."""
        return json.dumps(asdict(self) | {"data": b64encode(self.data).decode()}).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Operation":
        """The operation that :meth:`to_json` wrote."""
        raw = json.loads(text)
        return cls(**(raw | {"kind": Kind(raw["kind"]), "data": b64decode(raw["data"])}))


@dataclass(frozen=True, kw_only=True)
class Result:
    """What became of an operation.

    Attributes:
        cycles: since the last reset.
        outcome: how it ended.
        response: of AXI, the worst; a :class:`hdl.axi.AxiResponse`.
        interrupt: whether the interrupt is raised.
        data: bytes read.
        violations: by vault, the rule of the DRAM that its controller broke first, if one did.
        seconds: that the operation took on this machine.
    """

    cycles: int
    outcome: Outcome
    response: int
    interrupt: bool
    data: bytes = b""
    violations: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def to_json(self) -> bytes:
        """The result as JSON."""
        values = asdict(self) | {"data": b64encode(self.data).decode()}
        return json.dumps({"result": values}).encode()

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> "Result":
        """The result from what was within ``result`` of the JSON."""
        decoded = {"outcome": Outcome(raw["outcome"]), "data": b64decode(raw["data"])}
        return cls(**(dict(raw) | decoded))


class _Operation(ctypes.Structure):
    _fields_ = (
        ("kind", c_uint32),
        ("stop", c_uint32),
        ("address", c_uint64),
        ("count", c_uint64),
        ("limit", c_uint64),
        ("data", POINTER(c_uint8)),
    )


class _Result(ctypes.Structure):
    _fields_ = (
        ("cycles", c_uint64),
        ("outcome", c_uint32),
        ("response", c_uint32),
        ("interrupt", c_uint32),
    )


class ChipHostModel:
    """The host model (chip_host.h), in the simulator's own process."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.vip_chip_start.argtypes = (POINTER(_Operation),)
        library.vip_chip_start.restype = None
        library.vip_chip_result.argtypes = (POINTER(_Result),)
        library.vip_chip_result.restype = None
        self._data = (c_uint8 * 0)()

    def start(self, operation: Operation) -> None:
        """Start an operation; it ends when the top module's ``idle`` is 1 again."""
        access = operation.kind not in (Kind.RESET, Kind.RUN)
        self._data = (c_uint8 * (operation.count if access else 0)).from_buffer_copy(
            operation.data.ljust(operation.count if access else 0, b"\0")
        )
        raw = _Operation(
            kind=operation.kind,
            stop=operation.stop,
            address=operation.address,
            count=operation.count,
            limit=operation.limit,
            data=self._data,
        )
        self.library.vip_chip_start(byref(raw))

    def result(self) -> Result:
        """What became of the operation that ended last; while one runs, the cycles so far."""
        raw = _Result()
        self.library.vip_chip_result(byref(raw))
        return Result(
            cycles=raw.cycles,
            outcome=Outcome(raw.outcome),
            response=raw.response,
            interrupt=bool(raw.interrupt),
            data=bytes(self._data),
        )
