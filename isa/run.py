"""A run of programs: what a machine is given, and what it reports.

A :class:`Launch` starts all engines of a machine with one program. The machine may be an
instruction set simulator, a timing model or Verilog in a simulator, of one engine, a vault or a
chip: it reports a :class:`RunResult`, with an :class:`EngineEnd` of each
engine. What a machine does not know (a single engine has no network) is empty there.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from support.errors import Shown, VipError

from .faults import FaultCause
from .image import DramImage
from .program import Program

#: A launch that takes more cycles counts as hung; as many are hours of simulation.
_MAX_CYCLES = 1 << 36
_COLUMN_BYTES = 32
#: Most intervals that a picture can resolve.
_MOST_INTERVALS = 400
_LINKS = ("EAST_FLITS", "WEST_FLITS", "NORTH_FLITS", "SOUTH_FLITS")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One launch of all engines.

    Attributes:
        program: executed by all engines.
        parameters: the start register of that name, the same for all: the address of the parameter
            block, within its vault where there are several; 0..2**64 - 1.
        name: distinguishes the launches of a job.
        max_cycles: a launch that takes more cycles counts as hung; 1..2**63 - 1.
        stop_after: the host stops an engine this many cycles after the launch, 0 or more, if it
            still runs; None: it does not.
        limits: entries of the array range check, and memory requests in flight, that a watched
            engine may use, each at least 1; None: all that it has.
    """

    program: Program
    parameters: int = 0
    name: str = ""
    max_cycles: int = _MAX_CYCLES
    stop_after: int | None = None
    limits: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class EngineEnd(Shown):
    """The state in which a run leaves an engine.

    Attributes:
        state: ``halted`` or ``faulted``; ``running`` where the run was broken off, or a limit
            reached; ``idle``: it was not launched.
        cause, pc: of a fault; ``pc`` means nothing without one.
        memory_error: memory answered an access with an error, beside or as the cause: stores of the
            program may be missing.
        cycles: of the program, from its first instruction to its end, as the counter ``CYCLES``; of
            a chip whose engines have no counters those of :attr:`RunResult.host_cycles`.
        elapsed_cycles: from the launch until the host sees the end, so with the engine's start-up
            and the wait for its units; in a chip the same as ``cycles``.
        counters: by name of :class:`pe.interface.PeCounter` and, with a load history,
            :class:`pe.interface.HistoryCounter`; empty: not read.
        registers: 64-bit patterns. scratchpad: all its bytes. Empty where they can't be read.
        in_flight: entries of the array range check, and memory requests, in use at once, as far as
            that decides whether anything waits; None unless the engine is watched.
        pe, vault, slot: the engine's numbers in the chip, of its vault, and in its vault.
        fault: one line about it, as of :func:`isa.iss.explain.fault_line`; "" without one.
        executed: instructions, where the machine counts them; the ``halt`` included, a faulting one
            not.
    """

    state: str
    cause: FaultCause = FaultCause.NONE
    pc: int = 0
    memory_error: bool = False
    cycles: int = 0
    elapsed_cycles: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)
    registers: Sequence[int] = field(default=(), repr=False)
    scratchpad: bytes = field(default=b"", repr=False)
    in_flight: tuple[int, int] | None = None
    pe: int = 0
    vault: int = 0
    slot: int = 0
    fault: str = field(default="", compare=False)
    executed: int = 0

    @property
    def halted(self) -> bool:
        """Whether it ended as a program should."""
        return self.state == "halted"

    def __str__(self) -> str:
        """The fault, and whose."""
        where = f"PE {self.pe} (vault {self.vault}, slot {self.slot})"
        cause = self.cause.name.lower().replace("_", " ")
        both = self.memory_error and self.cause is not FaultCause.MEMORY_ERROR
        fault = self.fault or f"{cause} at word {self.pc}"
        return f"{where}: {fault}" + ("; also a memory error" if both else "")


@dataclass(frozen=True, kw_only=True)
class RunResult(Shown):
    """Result of a launch.

    Attributes:
        engines: that were launched; of a chip all.
        simulated_cycles: of the machine, with all loading and reading that it simulates.
        seconds: that took on this machine.
        vaults: of each vault, by name of :class:`memory.controller.counters.VaultCounter` and, with
            a line buffer, :class:`memory.line_buffer.layout.LineCounter`, from the launch to
            :data:`memory.controller.counters.LAG_CYCLES` after the last engine's end. Two reads of
            ``CYCLES`` and ``REFRESHES`` give a time each to within that.
        network: of each vault's node, by name of :class:`noc.node.counters.NetworkCounter`, from
            the launch to the end.
        latencies: of a vault, requests by cycles from arrival to column command: ``<16``: those
            below 16, for each of :data:`memory.controller.counters.LATENCY_LIMITS`, and ``more``.
        commands: given to the DRAM of a vault since reset, by name, and ``cycles``.
        windows: columns that a vault read and wrote in each ``window_cycles`` from launch on, by
            the cycle of their command; the last ones lie after the end.
        host_cycles: from before the launch until the host of a chip has found that none runs.
        loading: cycles before that, in which the host loads the program.
        tck_ns: clock period.
    """

    engines: tuple[EngineEnd, ...]
    simulated_cycles: int
    seconds: float
    vaults: tuple[Mapping[str, int], ...] = ()
    network: tuple[Mapping[str, int], ...] = ()
    latencies: Mapping[str, int] = field(default_factory=dict)
    commands: Mapping[str, int] = field(default_factory=dict)
    windows: tuple[tuple[int, int], ...] = ()
    window_cycles: int = 0
    host_cycles: int = 0
    loading: int = 0
    tck_ns: float = 1.0

    @property
    def engine(self) -> EngineEnd:
        """The only engine."""
        (end,) = self.engines
        return end

    @property
    def faults(self) -> tuple[EngineEnd, ...]:
        """Engines that stopped at a fault."""
        return tuple(end for end in self.engines if end.state == "faulted")

    @property
    def counters(self) -> tuple[Mapping[str, int], ...]:
        """Of each engine; empty: they were not read."""
        return tuple(end.counters for end in self.engines if end.counters)

    @property
    def cycles(self) -> int:
        """Cycles of the program, of the engine that ran longest."""
        return max(end.cycles for end in self.engines)

    @property
    def elapsed_cycles(self) -> int:
        """Cycles from the launch to the end of the last engine."""
        return max(end.elapsed_cycles for end in self.engines)

    @property
    def cycles_per_second(self) -> float:
        """Simulated cycles per second."""
        return self.simulated_cycles / self.seconds

    @property
    def bytes_moved(self) -> int:
        """Bytes of the columns read and written; partly used columns count whole."""
        return _COLUMN_BYTES * sum(vault["READS"] + vault["WRITES"] for vault in self.vaults)

    @property
    def gbs(self) -> float:
        """Mean bandwidth of all DRAM from launch to the end of the last engine, in GB/s."""
        return self.bytes_moved / (self.elapsed_cycles * self.tck_ns)

    @property
    def row_hits(self) -> float:
        """Share of the requests that found their row open; 0 without requests."""
        served = sum(vault["READS"] + vault["WRITES"] for vault in self.vaults)
        return sum(vault["ROW_HITS"] for vault in self.vaults) / served if served else 0.0

    @property
    def remote_share(self) -> float:
        """Part of the engines' requests that went to another vault than their own; 0 without any.

        The host's requests, which are few while a program runs, are among those of vault 0.
        """
        local, remote = (
            sum(node[name] for node in self.network)
            for name in ("LOCAL_REQUESTS", "REMOTE_REQUESTS")
        )
        return remote / (local + remote) if local + remote else 0.0

    @property
    def flits(self) -> int:
        """Flits that crossed a link; one that crosses several counts for each."""
        return sum(node[name] for node in self.network for name in _LINKS)

    def bandwidth(self) -> tuple[float, NDArray[np.float64]]:
        """Bandwidth of a vault's DRAM from the launch to the end of the last engine.

        Returns:
            The length of an interval in us, and GB/s read and written as ``[2, intervals]``.
            Intervals are :attr:`window_cycles` or a multiple of it; the last may reach beyond the
            end of the run.
        """
        count = max(1, -(-self.elapsed_cycles // self.window_cycles))
        merged = -(-count // _MOST_INTERVALS)
        intervals = -(-count // merged)
        columns = np.zeros((intervals * merged, 2))
        recorded = np.array(self.windows[:count]).reshape(-1, 2)
        columns[: len(recorded)] = recorded
        nanoseconds = merged * self.window_cycles * self.tck_ns
        moved = columns.reshape(intervals, merged, 2).sum(axis=1).T * _COLUMN_BYTES
        return nanoseconds / 1000, moved / nanoseconds

    def numbers(self) -> dict[str, object]:
        """The numbers of the run as plain JSON data."""
        numbers: dict[str, object] = {
            "faults": [
                {
                    "pe": end.pe,
                    "vault": end.vault,
                    "cause": end.cause.name,
                    "pc": end.pc,
                    "fault": end.fault,
                    "memory_error": end.memory_error,
                }
                for end in self.faults
            ],
            "cycles": self.cycles,
            "counters": list(self.counters),
            "simulation_seconds": round(self.seconds, 3),
            "simulated_cycles_per_second": round(self.cycles_per_second),
        }
        if self.vaults:
            numbers["bandwidth_gbs"] = round(self.gbs, 3)
        if self.network:
            numbers |= {
                "remote_request_share": round(self.remote_share, 6),
                "flits": self.flits,
                "vault_counters": list(self.vaults),
                "network_counters": list(self.network),
            }
        if self.windows:
            length, (read, written) = self.bandwidth()
            numbers |= {
                "row_hit_rate": round(self.row_hits, 4),
                "bytes": self.bytes_moved,
                "vault_counters": self.vaults[0],
                "latencies": self.latencies,
                # GB/s in each interval from launch to the end of the last engine.
                "bandwidth": {
                    "interval_us": round(length, 4),
                    "read_gbs": [round(float(value), 3) for value in read],
                    "written_gbs": [round(float(value), 3) for value in written],
                },
            }
        return numbers


class RunError(VipError):
    """A run that did not end as a run must; the message says why."""


class Memory(Protocol):
    """A memory that can be read and written."""

    def read(self, address: int, n: int, /) -> bytes:
        """``n`` bytes from ``address`` on."""

    def write(self, address: int, data: bytes, /) -> None:
        """Put ``data`` to ``address``."""


class Machine(ABC):
    """A machine that runs launches, to be used in a ``with`` statement.

    Attributes:
        config: of what it is the machine.
    """

    config: Any

    #: Programs may have instructions that the engines lack: the launch finds out.
    lenient = False

    #: Begins and ends with the machine.
    _session: AbstractContextManager[Any] = nullcontext()

    def __enter__(self) -> Self:
        self._session.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        """End it."""
        self._session.__exit__(*error)

    @abstractmethod
    def run(
        self,
        launch: Launch,
        image: DramImage,
        *,
        engines: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> RunResult:
        """Run a launch.

        Parameters:
            image: all memory; the engines change it.
            engines: how many of each vault are launched, from slot 0 on; None: all.
            progress: called now and then with the cycles so far, or with the instructions of a
                machine without cycles.

        Raises:
            RunError: the launch does not fit, or an engine does not end in time.
        """

    def memory(self, image: DramImage) -> Memory:
        """The way to the contents of ``image`` between launches."""
        return image

    def restart(self) -> None:  # noqa: B027
        """Reset the machine, but not its memory, where a launch does not do so by itself."""
