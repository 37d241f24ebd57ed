"""The C++ models of a simulation as seen from Python: their structures and functions."""

import ctypes
import json
from collections.abc import Mapping
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_uint16, c_uint32, c_uint64
from dataclasses import asdict, dataclass, fields
from enum import IntEnum
from typing import Any

from isa.support.checks import Checks
from isa.support.errors import VipError

__all__ = [
    "COUNTERS",
    "NEVER",
    "BehaviourError",
    "HostJob",
    "HostResult",
    "MemoryBehaviour",
    "MemoryModel",
    "Outcome",
]

#: Counters that the host model reads.
COUNTERS = 16
#: More cycles than any run takes.
NEVER = 2**63
#: What the models count probabilities in.
_CERTAIN = 65536


class BehaviourError(VipError):
    """A memory that can't be simulated; the message names the value and what is allowed."""


_CHECK = Checks(BehaviourError)


@dataclass(frozen=True, kw_only=True)
class MemoryBehaviour:
    """How the simulated memory answers. The default never limits an engine.

    Attributes:
        latency: cycles from the last beat of a request to the first of its response; 1..1000000.
        extra_latency: up to so many cycles more, at random; 0..1000000.
        bandwidth: 64-bit words per 256 cycles, for reading and for writing each; 1..256.
        stall: chance per cycle that no request is accepted; 0 <= stall < 1.
        gap: chance per cycle that no beat of a response comes; 0 <= gap < 1.
        out_of_order: answer in random order where the port's rules allow it.
        errors: addresses from the first to below the second (bytes) answer with an error.
        seed: of all the above.

    Raises:
        BehaviourError: a value outside its range.
    """

    latency: int = 40
    extra_latency: int = 0
    bandwidth: int = 256
    stall: float = 0.0
    gap: float = 0.0
    out_of_order: bool = False
    errors: tuple[int, int] = (0, 0)
    seed: int = 1

    def __post_init__(self) -> None:
        _CHECK.within("memory latency", self.latency, 1, 1_000_000)
        _CHECK.within("memory extra_latency", self.extra_latency, 0, 1_000_000)
        _CHECK.within("memory bandwidth", self.bandwidth, 1, 256)
        _CHECK.within("memory seed", self.seed, 0, 2**64 - 1)
        _CHECK.within("memory errors' start", self.errors[0], 0, 2**63)
        _CHECK.within("memory errors' end", self.errors[1], self.errors[0], 2**63)
        for name in ("stall", "gap"):
            if not 0 <= getattr(self, name) < 1:
                raise BehaviourError(f"memory {name} must be from 0 to below 1")


class _Behaviour(ctypes.Structure):
    _fields_ = (
        ("seed", c_uint64),
        ("error_begin", c_uint64),
        ("error_end", c_uint64),
        ("latency", c_uint32),
        ("extra_latency", c_uint32),
        ("bandwidth", c_uint32),
        ("stall", c_uint32),
        ("gap", c_uint32),
        ("out_of_order", c_uint32),
    )


class _HostJob(ctypes.Structure):
    _fields_ = (
        ("words", POINTER(c_uint32)),
        ("word_count", c_uint32),
        ("reset", c_uint32),
        ("parameters", c_uint64),
        ("max_cycles", c_uint64),
        ("stop_after", c_uint64),
        ("stop_cycles", c_uint64),
        ("pe_index", c_uint16),
        ("vault", c_uint16),
        ("slot", c_uint16),
        ("pe_count", c_uint16),
    )


class _HostResult(ctypes.Structure):
    _fields_ = (
        ("cycles", c_uint64),
        ("counters", c_uint64 * COUNTERS),
        ("pc", c_int32),
        ("state", c_uint32),
        ("cause", c_uint32),
        ("memory_error", c_uint32),
        ("outcome", c_uint32),
    )


class Outcome(IntEnum):
    """How a run went, as the host model says."""

    ENDED = 0
    #: The program went on to the limit of cycles; the engine then obeyed ``stop``.
    TOO_LONG = 1
    #: The engine did not even stop.
    HUNG = 2
    #: The engine broke a rule of the memory port.
    VIOLATION = 3
    #: The engine said that it had ended with requests in flight.
    IN_FLIGHT = 4


@dataclass(frozen=True, kw_only=True)
class HostJob:
    """One run as it is handed to the simulator; see :class:`sim_tb.cosim.engine.Job` for the
    meaning.

    ``stop_after`` is :data:`NEVER` without a stop. ``stop_cycles`` is how long a stopped engine may
    take to complete what it has issued; one that takes longer hangs. ``sizes`` are those of the
    tables of a watched engine, None for one that is not.
    """

    words: tuple[int, ...]
    memory: str
    behaviour: MemoryBehaviour
    reset: bool
    parameters: int
    max_cycles: int
    stop_cycles: int
    identity: tuple[int, int, int, int]
    scratchpad: str | None = None
    sizes: tuple[int, int] | None = None
    limits: tuple[int, int] | None = None
    stop_after: int = NEVER

    def to_json(self) -> bytes:
        """The job as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "HostJob":
        """The job that :meth:`to_json` wrote."""
        raw = json.loads(text)
        raw["behaviour"]["errors"] = tuple(raw["behaviour"]["errors"])
        raw["behaviour"] = MemoryBehaviour(**raw["behaviour"])
        raw["words"] = tuple(raw["words"])
        raw["identity"] = tuple(raw["identity"])
        for name in ("sizes", "limits"):
            raw[name] = raw[name] and tuple(raw[name])
        return cls(**raw)


@dataclass(frozen=True, kw_only=True)
class HostResult:
    """What the simulator found at the end of a run."""

    outcome: Outcome
    violation: str
    cycles: int
    counters: tuple[int, ...]
    state: int
    cause: int
    pc: int
    memory_error: bool
    wall_seconds: float
    registers: tuple[int, ...] = ()
    scratchpad: str = ""
    in_flight: tuple[int, int] | None = None

    def to_json(self) -> bytes:
        """The result as JSON."""
        return json.dumps({"result": asdict(self)}).encode()

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> "HostResult":
        """The result from what was within ``result`` of the JSON."""
        values = {item.name: raw[item.name] for item in fields(cls)}
        values["outcome"] = Outcome(values["outcome"])
        values["counters"] = tuple(values["counters"])
        if values["in_flight"] is not None:
            values["in_flight"] = tuple(values["in_flight"])
        values["registers"] = tuple(values["registers"])
        return cls(**values)


class MemoryModel:
    """The memory model (memory_model.h) in a loaded library.

    Parameters:
        library: the simulator itself, or a library made of the model alone.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.vip_memory_open.argtypes = (c_char_p,)
        library.vip_memory_open.restype = c_int64
        library.vip_memory_configure.argtypes = (c_int32, POINTER(_Behaviour))
        library.vip_memory_configure.restype = None
        library.vip_memory_violation.argtypes = (c_int32,)
        library.vip_memory_violation.restype = c_char_p
        library.vip_memory_in_flight.argtypes = (c_int32,)
        library.vip_memory_in_flight.restype = c_int32

    def open(self, path: str) -> int:
        """Make the file at ``path`` the memory; its size in bytes.

        Raises:
            OSError: it can't be opened and mapped.
        """
        size = int(self.library.vip_memory_open(path.encode()))
        if size < 0:
            raise OSError(f"cannot map the memory image {path}")
        return size

    def configure(self, port: int, behaviour: MemoryBehaviour) -> None:
        """Reset ``port``, with nothing in flight, to ``behaviour``."""
        raw = _Behaviour(
            seed=behaviour.seed,
            error_begin=behaviour.errors[0],
            error_end=behaviour.errors[1],
            latency=behaviour.latency,
            extra_latency=behaviour.extra_latency,
            bandwidth=behaviour.bandwidth,
            stall=int(behaviour.stall * _CERTAIN),
            gap=int(behaviour.gap * _CERTAIN),
            out_of_order=behaviour.out_of_order,
        )
        self.library.vip_memory_configure(port, byref(raw))

    def violation(self, port: int) -> str:
        """The first rule that the requester of ``port`` broke, "" if none."""
        return str(self.library.vip_memory_violation(port).decode())

    def in_flight(self, port: int) -> int:
        """Requests of ``port`` accepted and not yet answered."""
        return int(self.library.vip_memory_in_flight(port))


class HostModel:
    """The host models (pe_host.h) and the design's memories, in the simulator's own process."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.vip_host_start.argtypes = (c_int32, POINTER(_HostJob))
        library.vip_host_start.restype = None
        library.vip_host_cycles.argtypes = (c_int32,)
        library.vip_host_cycles.restype = c_uint64
        library.vip_host_result.argtypes = (c_int32, POINTER(_HostResult))
        library.vip_host_result.restype = None
        library.vip_host_arrays.argtypes = ()
        library.vip_host_arrays.restype = c_char_p
        library.vip_host_array.argtypes = (c_char_p, c_char_p)
        library.vip_host_array.restype = ctypes.c_void_p
        self._words: dict[int, ctypes.Array[c_uint32]] = {}

    def start(self, job: HostJob, engine: int = 0) -> None:
        """Start ``job`` on ``engine`` at the next clock edge."""
        count = len(job.words)
        words = self._words[engine] = (c_uint32 * max(count, 1))(*job.words)
        pe_index, vault, slot, pe_count = job.identity
        raw = _HostJob(
            words=words,
            word_count=count,
            reset=job.reset,
            parameters=job.parameters,
            max_cycles=job.max_cycles,
            stop_after=job.stop_after,
            stop_cycles=job.stop_cycles,
            pe_index=pe_index,
            vault=vault,
            slot=slot,
            pe_count=pe_count,
        )
        self.library.vip_host_start(engine, byref(raw))

    def cycles(self, engine: int = 0) -> int:
        """Cycles of the current run of ``engine``."""
        return int(self.library.vip_host_cycles(engine))

    def result(self, engine: int = 0) -> dict[str, Any]:
        """Fields of :class:`HostResult` that the host model knows, of the run of ``engine`` that
        ended last."""
        raw = _HostResult()
        self.library.vip_host_result(engine, byref(raw))
        return {
            "outcome": Outcome(raw.outcome),
            "cycles": int(raw.cycles),
            "counters": tuple(raw.counters),
            "state": int(raw.state),
            "cause": int(raw.cause),
            "pc": int(raw.pc),
            "memory_error": bool(raw.memory_error),
        }

    def arrays(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Readable memories: (scope, name) -> (bits of a word, words)."""
        found = {}
        for line in self.library.vip_host_arrays().decode().splitlines():
            scope, name, bits, words = line.rsplit(" ", 3)
            found[scope, name] = (int(bits), int(words))
        return found

    def array(self, scope: str, name: str, bits: int, words: int) -> "ctypes.Array[Any]":
        """The words of such a memory (up to 64 bits each), to read and to write in place."""
        address = self.library.vip_host_array(scope.encode(), name.encode())
        kind: Any = next(
            kind
            for size, kind in ((8, ctypes.c_uint8), (16, c_uint16), (32, c_uint32), (64, c_uint64))
            if bits <= size
        )
        memory: ctypes.Array[Any] = (kind * words).from_address(address)
        return memory
