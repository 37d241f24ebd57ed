"""Runs of a vault with its engines, as exchanged with the simulator."""

from collections.abc import Mapping
from ctypes import c_uint64
from dataclasses import dataclass
from typing import Annotated

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from memory.controller.counters import INDEX_BITS
from memory.model.device_model import DeviceModel, DeviceSetup
from support.schema import C

from .engine import HostJob, HostResult
from .models import Library, Model

_DEVICE = 0


@dataclass(frozen=True, kw_only=True)
class TileJob:
    """One run; see :meth:`sim_tb.cosim.vault.VaultSimulation.run`.

    Attributes:
        host: the run of each engine, whose memory and identity are the tile's.
        memory: file of the DRAM. setup: the DRAM's geometry and timing.
        engines: number of engines launched, from slot 0 on.
        lag: cycles from the end of the last engine until the vault's counters are complete.
        settle: further cycles until all writes are in the DRAM.
        window: cycles of each interval for which the DRAM's traffic is reported.
    """

    host: HostJob
    memory: str
    setup: DeviceSetup
    engines: int
    lag: int
    settle: int
    window: int

    def start(self, library: Library) -> None:
        DeviceModel(library.library).open(_DEVICE, self.memory, self.setup)
        for engine in range(self.engines):
            library.start("host", self.host, engine)
        library.start("tile", self)

    def progress(self, library: Library) -> int:
        return max(engine.cycles for engine in self._engines(library))

    def result(self, library: Library, seconds: float) -> "TileResult":
        device = DeviceModel(library.library)
        return library.result(
            "tile",
            TileResult,
            engines=self._engines(library),
            violation=device.violation(_DEVICE),
            commands=device.counts(_DEVICE),
            windows=device.recorded(_DEVICE),
            wall_seconds=seconds,
        )

    def _engines(self, library: Library) -> tuple[HostResult, ...]:
        return tuple(library.result("host", HostResult, engine) for engine in range(self.engines))


@dataclass(frozen=True, kw_only=True)
class TileResult:
    """State at the end of a run, of each launched engine and of the vault.

    ``windows`` are the columns read and written in each interval since the launch; for the other
    fields see :class:`isa.run.RunResult`.
    """

    counters: Annotated[tuple[int, ...], C(c_uint64 * (1 << INDEX_BITS))]
    engines: tuple[HostResult, ...]
    violation: str
    commands: Mapping[str, int]
    windows: tuple[tuple[int, int], ...]
    wall_seconds: float


TILE = Model(
    name="tile",
    signature=wiring.Signature(
        {
            #: Any engine is launched now. All engines have ended.
            "launched": In(1),
            "engines_idle": In(1),
            "counter_index": Out(INDEX_BITS),
            "counter_value": In(64),
            "idle": Out(1),
        }
    ),
    job=TileJob,
    result=TileResult,
    sources=("tile_host.cpp",),
)
