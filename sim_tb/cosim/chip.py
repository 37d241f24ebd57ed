"""Cosimulation of a chip: one program on all engines, driven through the AXI ports alone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hdl.ports import COLUMN_BYTES
from isa.program import Program
from memory.controller.counters import VaultCounter
from noc.node.counters import NetworkCounter
from pe.interface import PeCounter
from soc.host.driver import Host, HostTimeout
from soc.host.reports import FaultReport
from soc.host.transport import Blocking, run

from .chip_session import ChipSession
from .engine import CosimError

__all__ = ["ChipResult", "run_program"]


@dataclass(frozen=True, kw_only=True)
class ChipResult:
    """Result of a program on a chip.

    Attributes:
        faults: of the PEs that did not halt by themselves.
        cycles: from before the launch until the host has found that none runs.
        loading: cycles before that, in which the host loads the program.
        counters: of each PE, by name of :class:`pe.interface.PeCounter`.
        vaults: of each vault, by name of :class:`memory.controller.counters.VaultCounter`, and
        network: of each vault's node, by name of :class:`noc.node.counters.NetworkCounter`: from
            the launch to the end. Without counters there are none of these three.
        tck_ns: clock period.
        simulated_cycles, seconds: of the simulation with all its loading and reading, and how long
            it took on this machine.
    """

    faults: tuple[FaultReport, ...]
    cycles: int
    loading: int
    counters: tuple[Mapping[str, int], ...]
    vaults: tuple[Mapping[str, int], ...]
    network: tuple[Mapping[str, int], ...]
    tck_ns: float
    simulated_cycles: int
    seconds: float

    @property
    def program_cycles(self) -> int:
        """Cycles of the PE that ran longest; without counters, those that the host saw."""
        return max((pe["CYCLES"] for pe in self.counters), default=self.cycles)

    @property
    def remote_share(self) -> float:
        """Part of the PEs' requests that went to another vault than their own; 0 without any.

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
        links = ("EAST_FLITS", "WEST_FLITS", "NORTH_FLITS", "SOUTH_FLITS")
        return sum(node[name] for node in self.network for name in links)

    @property
    def gbs(self) -> float:
        """Bandwidth of all DRAM from launch to end, in GB/s; partly used columns count whole."""
        columns = sum(vault["READS"] + vault["WRITES"] for vault in self.vaults)
        return columns * COLUMN_BYTES / (self.program_cycles * self.tck_ns)

    @property
    def cycles_per_second(self) -> float:
        """Simulated cycles per second."""
        return self.simulated_cycles / self.seconds


def run_program(
    chip: ChipSession,
    program: Program,
    *,
    max_cycles: int,
    pes: Iterable[int] | None = None,
    parameters: int = 0,
    counters: bool = True,
) -> ChipResult:
    """Load a program into PEs of a simulated chip, run it to its end, and report the result.

    Parameters:
        max_cycles: PEs that run longer are an error. pes: None: all.
        parameters: address of the parameter block, which all PEs are given.
        counters: whether to read them, where there are any. That takes time: of a chip of 32 vaults
            some 500,000 cycles.

    Raises:
        CosimError: a PE does not end in time; the message names those that faulted.
        soc.host.transport.HostError: the chip can't take the program or the address.
    """
    host = Host(Blocking(chip))
    period = chip.period_ns * 1e-9
    chosen = None if pes is None else tuple(pes)
    run(host.identify())
    loading = chip.cycles
    run(host.load(program, chosen))
    loading = chip.cycles - loading
    before = _of_vaults(chip, host, counters)
    started = chip.cycles
    run(host.launch(chosen, parameters=parameters))
    late = ""
    running = True
    while running and not late:
        left = started + max_cycles - chip.cycles
        try:
            run(host.wait(chosen, timeout=left * period))
            running = False
        except HostTimeout as error:
            # An interrupt, of a fault perhaps, lets the host give up before.
            late = str(error) if chip.cycles >= started + max_cycles else ""
    cycles = chip.cycles - started
    faults = run(host.faults())
    if late:
        raise CosimError("; ".join([*(f"{fault}" for fault in faults), late]))
    after = _of_vaults(chip, host, counters)
    counted = range(chip.config.pes if counters and chip.config.pe.counters else 0)
    return ChipResult(
        faults=faults,
        cycles=cycles,
        loading=loading,
        counters=tuple(_named(run(host.counters(pe))) for pe in counted),
        vaults=tuple(_less(one, other) for one, other in zip(after[0], before[0], strict=True)),
        network=tuple(_less(one, other) for one, other in zip(after[1], before[1], strict=True)),
        tck_ns=chip.period_ns,
        simulated_cycles=chip.cycles,
        seconds=chip.seconds,
    )


_Counts = tuple[Mapping[str, int], ...]


def _of_vaults(chip: ChipSession, host: Host, wanted: bool) -> tuple[_Counts, _Counts]:
    """Counters of all vaults and nodes, once they have counted all that has happened."""
    chip.settle()
    config = chip.config
    vaults = range(config.vaults if wanted and config.tile.vault.counters else 0)
    nodes = range(config.vaults if wanted and config.host.network_counters else 0)
    network = [run(host.network_counters(vault)) for vault in nodes]
    return (
        tuple(_named(run(host.vault_counters(vault))) for vault in vaults),
        tuple({item.name: node[item] for item in NetworkCounter} for node in network),
    )


def _named(counters: Mapping[PeCounter, int] | Mapping[VaultCounter, int]) -> Mapping[str, int]:
    return {item.name: value for item, value in counters.items()}


def _less(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    return {name: value - other[name] for name, value in one.items()}
