"""Cosimulation of a chip: one program on all engines, driven through the AXI ports alone."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from isa.image import DramImage
from isa.run import EngineEnd, Launch, Machine, Memory, RunResult
from memory.controller.counters import VaultCounter
from noc.node.counters import NetworkCounter
from pe.interface import PeCounter
from soc.chip.config import ChipConfig
from soc.host.driver import Host, HostTimeout
from soc.host.transport import Blocking, run

from .chip_session import ChipSession
from .engine import CosimError

__all__ = ["ChipMachine", "run_launch"]


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
        CosimError: a PE does not end in time; the message names those that faulted. Or the launch
            has a stop or limits.
        soc.host.transport.HostError: the chip can't take the program or the address.
    """
    if launch.stop_after is not None or launch.limits is not None:
        raise CosimError("the host of a chip does not stop or limit its engines")
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


def _of_vaults(chip: ChipSession, host: Host, counted: bool) -> tuple[_Counts, _Counts]:
    """Counters of all vaults and nodes, once they have counted all that has happened."""
    chip.settle()
    config = chip.config
    vaults = range(config.vaults if counted and config.tile.vault.counters else 0)
    nodes = range(config.vaults if counted and config.host.network_counters else 0)
    network = [run(host.network_counters(vault)) for vault in nodes]
    return (
        tuple(_named(run(host.vault_counters(vault))) for vault in vaults),
        tuple({item.name: node[item] for item in NetworkCounter} for node in network),
    )


def _named(counters: Mapping[PeCounter, int] | Mapping[VaultCounter, int]) -> Mapping[str, int]:
    return {item.name: value for item, value in counters.items()}


def _less(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    return {name: value - other[name] for name, value in one.items()}


class _HostMemory:
    """The DRAM of a simulated chip, through the chip's AXI port."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def read(self, address: int, n: int, /) -> bytes:
        return run(self._host.read(address, n))

    def write(self, address: int, data: bytes, /) -> None:
        run(self._host.write(address, data))


class ChipMachine(Machine):
    """A chip behind its host port, as a machine: the host loads programs, launches and waits.

    Parameters:
        config: of the chip.
        session: opens one with an image, and with what is shown the cycles so far.
        preload: data are put into the DRAM, and taken from it, without the chip: many take longer
            to write at 8 bytes a cycle than to work on. Else the host does it.
        counters: as of :func:`run_launch`.

    Raises:
        CosimError: ``preload`` on a chip with preload memories (:class:`memory.preload.Preload`).
    """

    def __init__(
        self,
        config: ChipConfig,
        session: Callable[[DramImage, Callable[[int], None]], ChipSession],
        *,
        preload: bool = False,
        counters: bool = True,
    ) -> None:
        if preload and config.tile.vault.preload_bytes:
            raise CosimError(
                "data put into the DRAM are not in a preload memory: the host has to write them"
            )
        self.config = config
        self._open, self._preload, self._counters = session, preload, counters
        self._stack = ExitStack()
        self._chip: ChipSession | None = None
        self._progress: Callable[[int], None] | None = None

    def __exit__(self, *error: Any) -> None:
        self._chip = None
        self._stack.__exit__(*error)

    def _session(self, image: DramImage) -> ChipSession:
        """The session of the chip whose DRAM is ``image``."""
        if self._chip is None or self._chip.image is not image:
            self._stack.close()
            self._chip = self._stack.enter_context(self._open(image, self._report))
        return self._chip

    def _report(self, cycles: int) -> None:
        if self._progress is not None:
            self._progress(cycles)

    def memory(self, image: DramImage) -> Memory:
        """The image itself with ``preload``, else the host's way to it."""
        chip = self._session(image)
        return image if self._preload else _HostMemory(Host(Blocking(chip)))

    def restart(self) -> None:
        """Reset the chip, but not its DRAM."""
        if self._chip is not None:
            self._chip.reset()

    def run(
        self,
        launch: Launch,
        image: DramImage,
        *,
        engines: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> RunResult:
        """Run a launch on all engines; the program ends at once in those beyond ``engines``.

        Raises:
            CosimError: as of :func:`run_launch`.
            soc.host.transport.HostError: the chip can't take the program or the address.
        """
        self._progress = progress
        return run_launch(self._session(image), launch, counters=self._counters)
