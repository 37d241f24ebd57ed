"""Runs of a vault with its engines as they are handed to the simulator and back."""

import ctypes
import json
from collections.abc import Mapping
from ctypes import POINTER, c_uint32, c_uint64
from dataclasses import asdict, dataclass, fields
from typing import Any

from memory.controller.counters import INDEX_BITS
from memory.model.device_model import DeviceSetup

from .models import Outcome

__all__ = ["EngineResult", "TileHostModel", "TileJob", "TileResult"]

_COUNTERS = 1 << INDEX_BITS


@dataclass(frozen=True, kw_only=True)
class TileJob:
    """One run; see :func:`sim_tb.cosim.vault.run_vault` for the meaning.

    Attributes:
        words, memory, parameters, max_cycles, stop_cycles: as in
            :class:`sim_tb.harness.models.HostJob`, of each engine.
        engines: how many of the engines are launched, from slot 0 on.
        lag: cycles from the end of the last engine until the vault's counters tell all.
        settle: cycles from then on until all writes are in the DRAM.
        window: cycles of each interval for which the DRAM's traffic is told.
        setup: of the DRAM: fields of :class:`memory.model.device_model.DeviceSetup`.
    """

    words: tuple[int, ...]
    memory: str
    parameters: int
    max_cycles: int
    stop_cycles: int
    engines: int
    lag: int
    settle: int
    window: int
    setup: Mapping[str, int]

    def to_json(self) -> bytes:
        """The job as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "TileJob":
        """The job that :meth:`to_json` wrote."""
        raw = json.loads(text)
        return cls(**(raw | {"words": tuple(raw["words"])}))

    @property
    def device(self) -> DeviceSetup:
        """The DRAM's description."""
        return DeviceSetup(**self.setup)


@dataclass(frozen=True, kw_only=True)
class EngineResult:
    """What one engine's host saw; as in :class:`sim_tb.harness.models.HostResult`."""

    outcome: Outcome
    cycles: int
    counters: tuple[int, ...]
    state: int
    cause: int
    pc: int
    memory_error: bool


@dataclass(frozen=True, kw_only=True)
class TileResult:
    """What the simulator found at the end of a run: of each engine launched, and of the vault.

    ``windows`` are the columns read and written in each interval since the launch; the others are
    as in :class:`sim_tb.cosim.vault.VaultResult`.
    """

    engines: tuple[EngineResult, ...]
    violation: str
    counters: tuple[int, ...]
    commands: Mapping[str, int]
    windows: tuple[tuple[int, int], ...]
    wall_seconds: float

    def to_json(self) -> bytes:
        """The result as JSON."""
        return json.dumps({"result": asdict(self)}).encode()

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> "TileResult":
        """The result from what was within ``result`` of the JSON."""
        values = {item.name: raw[item.name] for item in fields(cls)}
        values["counters"] = tuple(raw["counters"])
        values["windows"] = tuple((reads, writes) for reads, writes in raw["windows"])
        values["engines"] = tuple(
            EngineResult(
                **(
                    engine
                    | {
                        "outcome": Outcome(engine["outcome"]),
                        "counters": tuple(engine["counters"]),
                    }
                )
            )
            for engine in raw["engines"]
        )
        return cls(**values)


class TileHostModel:
    """The tile's host model (tile_host.h), in the simulator's own process."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.vip_tile_start.argtypes = (c_uint32, c_uint32, c_uint32)
        library.vip_tile_start.restype = None
        library.vip_tile_counters.argtypes = (POINTER(c_uint64),)
        library.vip_tile_counters.restype = None

    def start(self, job: TileJob) -> None:
        """Start a run, after those of the engines."""
        self.library.vip_tile_start(job.lag, job.settle, job.window)

    def counters(self) -> tuple[int, ...]:
        """What the vault's counters counted from launch to end of the last run, by index."""
        values = (c_uint64 * _COUNTERS)()
        self.library.vip_tile_counters(values)
        return tuple(values)
