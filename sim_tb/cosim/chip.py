"""Cosimulation of a chip: one program on all engines, driven through the AXI ports alone."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from isa.run import EngineEnd, Launch, RunResult
from memory.controller.counters import VaultCounter
from noc.node.counters import NetworkCounter
from pe.interface import PeCounter
from soc.host.driver import Host, HostTimeout
from soc.host.transport import Blocking, run

from .chip_session import ChipSession
from .engine import CosimError

__all__ = ["run_launch"]


def run_launch(
    chip: ChipSession,
    launch: Launch,
    *,
    pes: Iterable[int] | None = None,
    counters: bool = True,
) -> RunResult:
    """Load a program into PEs of a simulated chip, run it to its end, and report the result.

    Parameters:
        launch: PEs that run longer than its ``max_cycles`` are an error. pes: None: all.
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
    run(host.load(launch.program, chosen))
    loading = chip.cycles - loading
    before = _of_vaults(chip, host, counters)
    started = chip.cycles
    run(host.launch(chosen, parameters=launch.parameters))
    late = ""
    running = True
    while running and not late:
        left = started + launch.max_cycles - chip.cycles
        try:
            run(host.wait(chosen, timeout=left * period))
            running = False
        except HostTimeout as error:
            # An interrupt, of a fault perhaps, lets the host give up before.
            late = str(error) if chip.cycles >= started + launch.max_cycles else ""
    cycles = chip.cycles - started
    faults = run(host.faults())
    if late:
        raise CosimError("; ".join([*(f"{fault}" for fault in faults), late]))
    after = _of_vaults(chip, host, counters)
    counted = range(chip.config.pes if counters and chip.config.pe.counters else 0)
    ends = {end.pe: end for end in faults}
    engines = []
    for pe in range(chip.config.pes):
        vault, slot = divmod(pe, chip.config.tile.pes)
        state = "halted" if chosen is None or pe in chosen else "idle"
        end = ends.get(pe) or EngineEnd(state=state, pe=pe, vault=vault, slot=slot)
        values = _named(run(host.counters(pe))) if pe in counted else {}
        engines.append(replace(end, counters=values, cycles=values.get("CYCLES", cycles)))
    return RunResult(
        engines=tuple(engines),
        vaults=tuple(_less(one, other) for one, other in zip(after[0], before[0], strict=True)),
        network=tuple(_less(one, other) for one, other in zip(after[1], before[1], strict=True)),
        host_cycles=cycles,
        loading=loading,
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
