"""Applications on an engine behind an AXI bus whose clock is once, twice and four times the
engine's, in Verilog."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sim_tb.cosim.applications import Application, applications
from sim_tb.cosim.chip_session import Periods
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from sim_tb.measure.preload import preload_chip
from soc.chip.config import ChipConfig
from soc.tile.clocks import ClockConfig

__all__ = ["BUS_LATENCIES", "FACTORS", "ClocksRun", "clocks_chip", "measure_clocks"]

#: Cycles of the engine's clock after which the memory on the bus answers, while both clocks are
#: alike: a DRAM at the engine's clock, and a board's DDR3 at an ASIC's clock.
BUS_LATENCIES = (60, 240)
#: How many times as fast as the engine's the clock of the bus is.
FACTORS = (1, 2, 4)
#: Period of the engine's clock in ps.
_ENGINE_PS = 1600


@dataclass(frozen=True, kw_only=True)
class ClocksRun:
    """An application at one latency, all its launches together, in cycles of the engine.

    Attributes:
        name: of the application. latency: one of :data:`BUS_LATENCIES`.
        one: with one clock.
        faster: with a clock for the bus, for each of :data:`FACTORS`; the memory answers after
            ``latency`` cycles of the bus's clock, as if all of it became faster with the bus.
        same_ns: the same, but the memory answers after the same time at each factor, as if only
            bus and crossing became faster.
    """

    name: str
    latency: int
    one: int
    faster: tuple[int, ...]
    same_ns: tuple[int, ...]


def clocks_chip(clocks: ClockConfig) -> ChipConfig:
    """A chip for an FPGA of one vault with one engine, and ``clocks``."""
    config = preload_chip(0)
    return replace(config, tile=replace(config.tile, clocks=clocks))


def measure_clocks(
    chosen: Sequence[Application] = applications(),
    progress: Callable[[str], None] | None = None,
) -> list[ClocksRun]:
    """Run ``chosen`` on the Verilog of :func:`clocks_chip`, with one clock and with two. Every
    output is compared with the golden model's.

    Parameters:
        progress: called with the name of each application before it runs.

    Raises:
        CosimError: an application faults, does not end, or has a wrong output.
        sim_tb.runner.build.BuildError: a simulator can't be built.
    """
    found = []
    for application in chosen:
        if progress is not None:
            progress(application.name)
        for latency in BUS_LATENCIES:
            faster = tuple(_cycles(application, latency, factor) for factor in FACTORS)
            # With both clocks alike, the two readings are one.
            slow = tuple(_cycles(application, latency * factor, factor) for factor in FACTORS[1:])
            found.append(
                ClocksRun(
                    name=application.name,
                    latency=latency,
                    one=_cycles(application, latency, None),
                    faster=faster,
                    same_ns=(faster[0], *slow),
                )
            )
    return found


def _cycles(application: Application, latency: int, factor: int | None) -> int:
    """Cycles of the engine; ``latency`` is in cycles of the bus, ``factor`` None one clock."""
    clocks = ClockConfig(domains="one" if factor is None else "two")
    periods = factor and Periods(engine_ps=_ENGINE_PS, memory_ps=_ENGINE_PS // factor)
    cycles = 0
    for job in application.jobs:
        outcome = run_on(job, clocks_chip(clocks), axi_latency=latency, periods=periods or None)
        if not outcome.match:
            raise CosimError(
                f"{application.name}: wrong output at a latency of {latency} and a bus of "
                f"{factor or 1} times the engine's clock"
            )
        cycles += outcome.cycles
    return cycles
