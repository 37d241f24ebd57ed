"""Applications behind an AXI bus, without and with a preload memory, in Verilog."""

from collections.abc import Iterator
from dataclasses import replace

from hdl.config import SramKind
from memory.axi.layout import AxiConfig
from memory.preload import Preload
from microkernels.suite import Application, suite
from pe.config import LOGISTIC_INSTRUCTIONS
from sim_tb.cosim.applications import workloads
from sim_tb.cosim.chip_copies import run_copies
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset
from synth.physical.area import synthesise

from .harness.experiment import SIMULATION, BenchError, Measurement, experiment, figure, say
from .harness.parts import part_area
from .harness.runs import exact

#: Latencies in cycles of the memory on the AXI bus: on-chip memory behind the bus, a DRAM at the
#: engine's clock, and a board's DDR3 at an ASIC's clock.
LATENCIES = (10, 60, 240)

#: Bytes of the preload memory; every application of the suite fits.
SIZE = 1 << 17

#: Latencies at which the memory's block RAMs are spent on engines instead, and how many engines
#: there are then: two more, with about as many block RAMs.
SHARED_LATENCIES = (60, 240)

ENGINES = 3


def preload_chip(size: int) -> ChipConfig:
    """A chip for an FPGA of one vault with one engine, and a preload memory of ``size`` bytes (0:
    none) at address 0."""
    config = chip_preset("fpga")
    assert isinstance(config.tile.vault, AxiConfig)
    vault = replace(config.tile.vault, preload_bytes=size)
    # All applications need the optional instructions of one of them.
    pe = replace(config.tile.pe, instructions=LOGISTIC_INSTRUCTIONS)
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


def _cycles(config: ChipConfig, application: Application, latency: int) -> int:
    cycles = 0
    for job in application.jobs:
        name = f"{application.name} at a latency of {latency}"
        cycles += exact(run_on(job, config, axi_latency=latency), name).cycles
    return cycles


def _throughput(application: Application, latency: int) -> float:
    """Work of :data:`ENGINES` engines in the time of one, in multiples of its own; every byte that
    they leave is compared."""
    throughputs = []
    for engines in (1, ENGINES):
        cycles, differing = run_copies(
            engines_chip(engines), workloads(application), axi_latency=latency
        )
        if differing:
            raise CosimError(
                f"{application.name}: wrong results on {engines} engines at a latency of {latency}"
            )
        throughputs.append(engines / cycles)
    one, many = throughputs
    return many / one


@experiment(presets=("fpga",), tools=(*SIMULATION, "pyosys"), minutes=25)
def preload() -> Iterator[Measurement]:
    """The applications behind an AXI bus, without and with a preload memory, in Verilog.

    On an engine whose memory is three latencies away, with their data in a preload memory, and on
    more engines in its place. The host writes the data and reads the outputs through the chip;
    every output is compared. And the 7-series area of the memory and of an engine.
    """
    plain, filled = preload_chip(0), preload_chip(SIZE)
    for application in suite().values():
        say(application.name)
        key = figure(application.name)
        if (size := max(job.end for job in application.jobs)) > SIZE:
            raise BenchError(f"{application.name} needs {size} bytes of {SIZE}")
        preloaded = _cycles(filled, application, max(LATENCIES))
        for latency in LATENCIES:
            cycles = _cycles(plain, application, latency)
            yield Measurement(f"{key}_{latency}", cycles, "cycles", 0.01)
            yield Measurement(f"{key}_gain_{latency}", cycles / preloaded, "", 0.01, True)
        yield Measurement(f"{key}_preloaded", preloaded, "cycles", 0.01)
        for latency in SHARED_LATENCIES:
            gain = _throughput(application, latency)
            yield Measurement(f"{key}_engines_gain_{latency}", gain, "", 0.01, True)
    one = synthesise(engines_chip(1).pe, "xc7").total.values
    for name in ("luts", "ffs", "brams"):
        yield Measurement(f"engine_{name}", one[name], name, 0.02)
    memory = part_area(_preload, "xc7")
    for name in ("luts", "ffs", "brams"):
        yield Measurement(name, memory[name], name, 0.02)


def _preload(sram: SramKind) -> Preload:
    vault = preload_chip(SIZE).tile.vault
    return Preload(
        size=SIZE,
        base=0,
        address_bits=vault.request_address_bits,
        tag_bits=vault.tag_bits,
        sram=sram,
    )
