"""Applications on an engine behind an AXI bus of some latency, without and with their data in a
preload memory, and on more engines in its place, in Verilog."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pe.config import SPECIAL_INSTRUCTIONS
from sim_tb.cosim.applications import Application, applications
from sim_tb.cosim.chip_copies import run_copies
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset

__all__ = [
    "BESIDE",
    "ENGINES",
    "LATENCIES",
    "SIZE",
    "PreloadRun",
    "engines_chip",
    "measure_preload",
    "preload_chip",
]

#: Cycles after which the memory on the AXI bus answers: on-chip memory behind the bus, a DRAM at
#: the engine's clock, and a board's DDR3 at an ASIC's clock.
LATENCIES = (10, 60, 240)
#: Bytes of the preload memory; every application of the suite fits.
SIZE = 1 << 17
#: Latencies at which the memory's block RAMs are spent on engines instead, and how many engines
#: there are then: two more, with about as many block RAMs.
BESIDE = (60, 240)
ENGINES = 3


@dataclass(frozen=True, kw_only=True)
class PreloadRun:
    """An application, all its launches together.

    Attributes:
        name: of the application. bytes: that its launches need at most.
        cycles: of the engine, for each of :data:`LATENCIES`.
        preloaded: with the data in a preload memory, at the longest latency.
        beside: for each of :data:`BESIDE`, how many times the work of one engine
            :data:`ENGINES` do in the same time, each on data of its own, without preload memory.
    """

    name: str
    bytes: int
    cycles: tuple[int, ...]
    preloaded: int
    beside: tuple[float, ...]


def preload_chip(size: int) -> ChipConfig:
    """A chip for an FPGA of one vault with one engine, and a preload memory of ``size`` bytes (0:
    none) at address 0."""
    config = chip_preset("fpga")
    vault = replace(config.tile.vault, preload_bytes=size)
    # All applications need the optional instructions of one of them.
    pe = replace(config.tile.pe, instructions=SPECIAL_INSTRUCTIONS)
    return replace(
        config,
        tile=replace(config.tile, pe=pe, pes=1, vault=vault),
        network=replace(config.network, columns=1, rows=1),
    )


def engines_chip(engines: int) -> ChipConfig:
    """:func:`preload_chip` without preload memory and with ``engines`` (1..3), each of which has a
    window of as many bytes as that memory would have."""
    config = preload_chip(0)
    pe = replace(config.pe, address_bits=(SIZE - 1).bit_length())
    tile = replace(config.tile, pe=pe, pes=engines, extra_ports=1)
    network = replace(config.network, tag_bits=tile.port_tag_bits)
    return replace(config, remote=False, tile=tile, network=network)


def measure_preload(
    chosen: Sequence[Application] = applications(),
    progress: Callable[[str], None] | None = None,
) -> list[PreloadRun]:
    """Run ``chosen`` on the Verilog of :func:`preload_chip` and :func:`engines_chip`. On the former
    the host writes the data and reads the outputs through the chip; every output is compared with
    the golden model's, and on the latter every byte that the engines leave.

    Parameters:
        progress: called with the name of each application before it runs.

    Raises:
        CosimError: an application's data are larger than 128 KiB, it faults, does not end, or has a
            wrong output.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    plain, filled = preload_chip(0), preload_chip(SIZE)
    found = []
    for application in chosen:
        if progress is not None:
            progress(application.name)
        size = max(job.end for job in application.jobs)
        if size > SIZE:
            raise CosimError(f"{application.name} needs {size} bytes of {SIZE}")
        found.append(
            PreloadRun(
                name=application.name,
                bytes=size,
                cycles=tuple(_cycles(plain, application, latency) for latency in LATENCIES),
                preloaded=_cycles(filled, application, max(LATENCIES)),
                beside=tuple(_throughput(application, latency) for latency in BESIDE),
            )
        )
    return found


def _cycles(config: ChipConfig, application: Application, latency: int) -> int:
    cycles = 0
    for job in application.jobs:
        outcome = run_on(job, config, axi_latency=latency)
        if not outcome.match:
            raise CosimError(f"{application.name}: wrong output at a latency of {latency}")
        cycles += outcome.cycles
    return cycles


def _throughput(application: Application, latency: int) -> float:
    """Work of :data:`ENGINES` engines in the time of one, in multiples of its own."""
    found = []
    for engines in (1, ENGINES):
        copies = run_copies(engines_chip(engines), application.workloads, axi_latency=latency)
        if copies.differing:
            raise CosimError(
                f"{application.name}: wrong results on {engines} engines at a latency of {latency}"
            )
        found.append(copies.throughput)
    one, many = found
    return many / one
