"""Belief propagation on Verilog, of one engine or of a vault, held against the golden model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from isa.image import DramImage
from isa.program import Program
from microkernels.bp.contents import pack, unpack
from microkernels.bp.golden import iterate
from microkernels.bp.kernel import bp_program
from microkernels.bp.layout import BpLayout
from microkernels.bp.problem import BpProblem, Messages
from microkernels.common.saturation import count_saturation
from pe.config import PeConfig
from pe.interface import PeState
from soc.tile.config import VaultTileConfig

from .engine import CosimError, CosimResult, Job, MemoryBehaviour, PeSimulation
from .vault import VaultResult, run_vault

__all__ = ["BpJob", "BpOutcome", "cosim_bp", "cosim_vault_bp"]

ResultT = TypeVar("ResultT", CosimResult, VaultResult)

#: No schedule is so bad; a program that runs longer hangs.
_CYCLES_PER_UPDATE_LIMIT = 20_000
_START_LIMIT = 100_000


@dataclass(frozen=True, kw_only=True)
class BpJob:
    """Belief propagation to run.

    Attributes:
        problem: what to solve.
        iterations: BP-M iterations of four directions each, at least 1.
        memory: behaviour of the memory beside one engine; a vault has its own.
        program: kernel to run; None: the one generated for the problem's labels and width.
    """

    problem: BpProblem
    iterations: int
    memory: MemoryBehaviour = field(default_factory=MemoryBehaviour)
    program: Program | None = None

    def assembled(self, scratchpad_bytes: int) -> Program:
        """The program, for an engine with such a scratchpad."""
        labels, bits = self.problem.labels, self.problem.bits
        return self.program or bp_program(labels, bits, scratchpad_bytes=scratchpad_bytes)

    @property
    def updates(self) -> int:
        """Messages to update, at least 1.

        Raises:
            CosimError: there is nothing to update.
        """
        updates = self.problem.updates * self.iterations
        if updates < 1:
            raise CosimError("nothing to update: give at least two pixels and one iteration")
        return updates

    @property
    def max_cycles(self) -> int:
        """Cycles after which the program surely hangs."""
        return _START_LIMIT + self.updates * _CYCLES_PER_UPDATE_LIMIT


@dataclass(frozen=True, kw_only=True)
class BpOutcome(Generic[ResultT]):
    """What came of a run.

    Attributes:
        match: every message of every direction equals the golden model's.
        differing: number of message elements that differ.
        updates: messages updated. cycles: of the program; of several engines, till the last ends.
        pes: engines that shared the work.
        messages: as the engines left them in memory.
        result: of the cosimulation.
        saturated: values that saturate in the golden model (:mod:`microkernels.common.saturation`).
    """

    match: bool
    differing: int
    updates: int
    cycles: int
    messages: Messages
    result: ResultT
    pes: int = 1
    saturated: int = 0

    @property
    def cycles_per_update(self) -> float:
        """Cycles of an engine for one message, the mean of all directions; the datapath's limit for
        16 labels of 16 bits is 80."""
        return self.cycles * self.pes / self.updates


def cosim_bp(
    job: BpJob,
    config: PeConfig,
    *,
    trace: Path | None = None,
    ports_only: bool = False,
    progress: Callable[[int], None] | None = None,
) -> BpOutcome[CosimResult]:
    """Run ``job`` on the Verilog of ``config`` and compare it with the golden model.

    Parameters:
        trace: waveform file, ``.vcd`` or ``.fst``. ports_only: of the engine's ports alone.
        progress: called now and then with the cycles so far.

    Raises:
        CosimError: the program faulted or did not end, or the grid has no edge.
        KernelError: a problem that the kernel can't solve.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    max_cycles = job.max_cycles
    layout = BpLayout.of(job.problem)
    program = job.assembled(config.scratchpad_bytes)
    with DramImage(1 << config.address_bits) as memory:
        pack(job.problem, layout, memory, iterations=job.iterations)
        with PeSimulation(config, trace=trace, ports_only=ports_only) as simulation:
            result = simulation.run(
                Job(
                    words=program.words,
                    image=memory,
                    memory=job.memory,
                    parameters=layout.parameters,
                    max_cycles=max_cycles,
                ),
                progress,
            )
        if result.state is not PeState.HALTED:
            raise CosimError(f"the kernel faulted at word {result.pc}: {result.cause.name}")
        messages = unpack(layout, memory)
    # Without counters, what the host sees: a few cycles of launch and end more.
    return _outcome(job, messages, result, result.counters["CYCLES"] or result.cycles, 1)


def cosim_vault_bp(
    job: BpJob,
    config: VaultTileConfig,
    *,
    pes: int | None = None,
    trace: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> BpOutcome[VaultResult]:
    """Run ``job`` on engines of a vault that share its tile, and compare with the golden model.

    Parameters:
        pes: engines that work, from slot 0 on; None: all. The others stay idle.
        trace, progress: as for :func:`cosim_bp`.

    Raises:
        CosimError: an engine faulted or did not end, the tile is larger than the vault, or the
            grid has no edge.
        KernelError: a problem that the kernel can't solve.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    max_cycles = job.max_cycles
    sharers = config.pes if pes is None else pes
    if not 1 <= sharers <= config.pes:
        raise CosimError(f"{sharers} engines can't work in a vault of {config.pes}")
    layout = BpLayout.of(job.problem, sharers=sharers)
    if layout.end > config.vault.size_bytes:
        raise CosimError(
            f"the tile needs {layout.end} bytes, the vault has {config.vault.size_bytes}"
        )
    program = job.assembled(config.pe.scratchpad_bytes)
    with DramImage(config.vault.size_bytes) as memory:
        pack(job.problem, layout, memory, iterations=job.iterations)
        result = run_vault(
            program,
            memory,
            config=config,
            max_cycles=max_cycles,
            active=sharers,
            parameters=layout.parameters,
            trace=trace,
            progress=progress,
        )
        for pe in result.pes:
            if pe.state is not PeState.HALTED:
                raise CosimError(
                    f"the kernel faulted on engine {pe.slot} at word {pe.pc}: {pe.cause.name}"
                )
        messages = unpack(layout, memory)
    cycles = max(pe.counters["CYCLES"] for pe in result.pes) or result.cycles
    return _outcome(job, messages, result, cycles, sharers)


def _outcome(
    job: BpJob, messages: Messages, result: ResultT, cycles: int, pes: int
) -> BpOutcome[ResultT]:
    with count_saturation() as clipped:
        differing = int(np.count_nonzero(messages != iterate(job.problem, job.iterations)))
    return BpOutcome(
        match=differing == 0,
        differing=differing,
        updates=job.updates,
        cycles=cycles,
        messages=messages,
        result=result,
        pes=pes,
        saturated=clipped.values,
    )
