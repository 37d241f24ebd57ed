"""Copies of one engine's work on all engines of a chip, each in a window of its own."""

from collections.abc import Callable, Sequence

from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.run import Launch
from soc.chip.config import ChipConfig

from .chip import AXI_LATENCY, ChipSimulation, run_launch
from .engine import CosimError


def run_copies(
    config: ChipConfig,
    works: Sequence[tuple[Launch, bytes]],
    progress: Callable[[int], None] | None = None,
    *,
    axi_latency: int = AXI_LATENCY,
) -> tuple[int, tuple[int, ...]]:
    """Run every launch of ``works`` on all engines of a chip at once: the cycles from launch to end
    as the host sees them, summed over the launches, and the engines whose memory differs from the
    instruction set simulator's.

    Data and results bypass the chip's host port; launches and waits go through it.

    Parameters:
        config: of the chip, whose engines have windows, and either the program in a ROM or an
            instruction buffer.
        works: launches in order, each with the memory of an engine before it.
        progress: called periodically with the cycles of the current simulation.
        axi_latency: as for :class:`sim_tb.cosim.chip.ChipSession`.

    Raises:
        CosimError: the engines have no windows, windows that are too small, or a preload memory; a
            program faults or takes too long.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    if not config.tile.windows:
        raise CosimError("copies need engines with windows: pe.address_bits below the vault's")
    if config.tile.vault.preload_bytes:
        raise CosimError("copies are put into the DRAM, not into a preload memory")
    size = 1 << config.pe.address_bits
    windows = [
        (vault << config.network.address_bits) + slot * size
        for vault in range(config.vaults)
        for slot in range(config.tile.pes)
    ]
    cycles = 0
    differing: set[int] = set()
    for launch, contents in works:
        if len(contents) > size:
            raise CosimError(f"{len(contents)} bytes of data for windows of {size} bytes")
        expected = _expected(config, launch, contents)
        with (
            DramImage(config.memory_bytes) as image,
            ChipSimulation(config, image, progress=progress, axi_latency=axi_latency) as chip,
        ):
            for window in windows:
                image.write(window, contents)
            result = run_launch(chip, launch, counters=False)
            if result.faults:
                raise CosimError("; ".join(map(str, result.faults)))
            chip.settle()
            cycles += result.host_cycles
            differing.update(
                pe for pe, window in enumerate(windows) if image.read(window, size) != expected
            )
    return cycles, tuple(sorted(differing))


def _expected(config: ChipConfig, launch: Launch, contents: bytes) -> bytes:
    """The contents that a window must have at the end."""
    bits = config.pe.address_bits
    with DramImage(1 << bits) as memory:
        memory.write(0, contents)
        simulator = Simulator(
            launch.program,
            memory,
            parameters=launch.parameters,
            address_bits=bits,
            scratchpad_bytes=max(config.pe.scratchpad_bytes, 4096),
            instruction_words=max(config.pe.instruction_words, 1024),
        )
        outcome = simulator.run(launch.max_cycles)
        if outcome.state != "halted":
            why = outcome.fault or f"{outcome.state} at word {outcome.pc}"
            raise CosimError(f"the program does not halt: {why}")
        return memory.read(0, 1 << bits)
