"""Applications on an engine behind an AXI bus of some latency, without and with their data in a
preload memory, in Verilog."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pe.config import SPECIAL_INSTRUCTIONS
from sim_tb.cosim.applications import Application, applications
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import cosim_chip
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset

__all__ = ["LATENCIES", "SIZE", "PreloadRun", "measure_preload", "preload_chip"]

#: Cycles after which the memory on the AXI bus answers: on-chip memory behind the bus, a DRAM at
#: the engine's clock, and a board's DDR3 at an ASIC's clock.
LATENCIES = (10, 60, 240)
#: Bytes of the preload memory; every application of the suite fits.
SIZE = 1 << 17


@dataclass(frozen=True, kw_only=True)
class PreloadRun:
    """An application, all its launches together.

    Attributes:
        name: of the application. bytes: that its launches need at most.
        cycles: of the engine, for each of :data:`LATENCIES`.
        preloaded: with the data in a preload memory, at the longest latency.
    """

    name: str
    bytes: int
    cycles: tuple[int, ...]
    preloaded: int


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


def measure_preload(
    chosen: Sequence[Application] = applications(),
    progress: Callable[[str], None] | None = None,
) -> list[PreloadRun]:
    """Run ``chosen`` on the Verilog of :func:`preload_chip`. The host writes the data and reads the
    outputs through the chip; every output is compared with the golden model's.

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
            )
        )
    return found


def _cycles(config: ChipConfig, application: Application, latency: int) -> int:
    cycles = 0
    for job in application.jobs:
        outcome = cosim_chip(job, config, axi_latency=latency)
        if not outcome.match:
            raise CosimError(f"{application.name}: wrong output at a latency of {latency}")
        cycles += outcome.cycles
    return cycles
