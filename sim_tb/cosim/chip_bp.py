"""Belief propagation on the Verilog of a chip, held against the golden model."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isa.image import DramImage
from microkernels.bp.chip import BpChipJob
from microkernels.bp.problem import BpProblem, Direction, Messages
from microkernels.bp.traffic import sweep_traffic
from microkernels.common.saturation import count_saturation
from microkernels.runtime.ring import VaultRing
from soc.chip.config import ChipConfig
from soc.host.driver import Host
from soc.host.transport import Blocking, run

from .chip import ChipResult, run_program
from .chip_session import ChipSimulation
from .engine import CosimError

__all__ = ["ChipBpOutcome", "chip_job", "cosim_chip_bp"]

#: No schedule is so bad; a program that runs longer hangs.
_CYCLES_PER_UPDATE_LIMIT = 20_000
_START_LIMIT = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ChipBpOutcome:
    """What came of a run.

    Attributes:
        match: every message of every direction equals the golden model's.
        differing: number of message elements that differ.
        updates: messages updated. pes: engines that shared the work.
        messages: as the chip left them in memory.
        remote_bytes: part of the bytes that engines moved to another vault, going by the layout.
        result: of the cosimulation.
        saturated: values that saturate in the golden model (:mod:`microkernels.common.saturation`).
    """

    match: bool
    differing: int
    updates: int
    pes: int
    messages: Messages
    remote_bytes: float
    result: ChipResult
    saturated: int = 0

    @property
    def cycles_per_update(self) -> float:
        """Cycles of an engine for one message, the mean of all directions."""
        return self.result.program_cycles * self.pes / self.updates


def chip_job(problem: BpProblem, iterations: int, config: ChipConfig) -> BpChipJob:
    """What the host of a chip has to do to solve ``problem`` with all of it.

    Raises:
        KernelError: it does not fit the chip.
    """
    network = config.network
    return BpChipJob(
        problem=problem,
        iterations=iterations,
        ring=VaultRing(
            columns=network.columns, rows=network.rows, address_bits=network.address_bits
        ),
        pes=config.tile.pes,
        scratchpad_bytes=config.pe.scratchpad_bytes,
        instruction_words=config.pe.instruction_words,
    )


def cosim_chip_bp(
    problem: BpProblem,
    iterations: int,
    config: ChipConfig,
    *,
    counters: bool = True,
    preload: bool = False,
    outer: bool = False,
    trace: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> ChipBpOutcome:
    """Solve ``problem`` on all engines of a chip, and compare with the golden model.

    The host loads the program, launches and waits through the chip's AXI ports; it also writes the
    problem and reads the messages there, unless ``preload`` is set.

    Parameters:
        iterations: BP-M iterations of four directions each, at least 1.
        preload: put the problem into the DRAM, and take the messages from it, without the chip:
            a large one takes longer to write at 8 bytes a cycle than to solve.
        counters: as for :func:`sim_tb.cosim.chip.run_program`.
        outer, trace, progress: as for :class:`sim_tb.cosim.chip_session.ChipSimulation`.

    Raises:
        CosimError: an engine faulted or did not end, or there is nothing to update.
        KernelError: a problem that the chip can't solve.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    job = chip_job(problem, iterations, config)
    if job.updates < 1:
        raise CosimError("nothing to update: give at least two pixels and one iteration")
    with (
        DramImage(config.memory_bytes) as image,
        ChipSimulation(config, image, outer=outer, trace=trace, progress=progress) as chip,
    ):
        host = Host(Blocking(chip))
        for address, content in job.writes():
            image.write(address, content) if preload else run(host.write(address, content))
        result = run_program(
            chip,
            job.program,
            max_cycles=_START_LIMIT + job.updates * _CYCLES_PER_UPDATE_LIMIT,
            parameters=job.parameters,
            counters=counters,
        )
        if result.faults:
            raise CosimError("; ".join(map(str, result.faults)))
        found = {
            address: image.read(address, length) if preload else run(host.read(address, length))
            for address, length in job.reads()
        }
    messages = job.result(found)
    with count_saturation() as clipped:
        differing = int(np.count_nonzero(messages != job.expected()))
    traffic = [sweep_traffic(job.layout, direction) for direction in Direction]
    total = sum(part.total for part in traffic)
    return ChipBpOutcome(
        match=differing == 0,
        differing=differing,
        updates=job.updates,
        pes=config.pes,
        messages=messages,
        remote_bytes=sum(part.remote for part in traffic) / total if total else 0.0,
        result=result,
        saturated=clipped.values,
    )
