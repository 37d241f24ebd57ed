"""Belief propagation on the Verilog of one processing engine, held against the golden model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hdl.config import PeConfig
from hdl.ports import PeState
from isa.image import DramImage
from isa.program import Program
from kernels.bp_golden import iterate
from kernels.bp_kernel import bp_program
from kernels.bp_layout import BpLayout, pack, unpack
from kernels.bp_problem import BpProblem, Messages

from .cosim import CosimError, CosimResult, Job, MemoryBehaviour, PeSimulation

__all__ = ["BpJob", "BpOutcome", "cosim_bp"]

#: No schedule is so bad; a program that runs longer hangs.
_CYCLES_PER_UPDATE_LIMIT = 20_000
_START_LIMIT = 100_000


@dataclass(frozen=True, kw_only=True)
class BpJob:
    """Belief propagation to run.

    Attributes:
        problem: what to solve.
        iterations: BP-M iterations of four directions each, at least 1.
        memory: behaviour of the memory beside the engine.
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


@dataclass(frozen=True, kw_only=True)
class BpOutcome:
    """What came of a run.

    Attributes:
        match: every message of every direction equals the golden model's.
        differing: number of message elements that differ.
        updates: messages updated. cycles: of the program.
        messages: as the engine left them in memory.
        result: of the cosimulation.
    """

    match: bool
    differing: int
    updates: int
    cycles: int
    messages: Messages
    result: CosimResult

    @property
    def cycles_per_update(self) -> float:
        """Cycles for one message; the datapath's limit for 16 labels of 16 bits is 80."""
        return self.cycles / self.updates


def cosim_bp(
    job: BpJob,
    config: PeConfig,
    *,
    trace: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> BpOutcome:
    """Run ``job`` on the Verilog of ``config`` and compare it with the golden model.

    Parameters:
        trace: waveform file, ``.vcd`` or ``.fst``.
        progress: called now and then with the cycles so far.

    Raises:
        CosimError: the program faulted or did not end, or the grid has no edge.
        KernelError: a problem that the kernel can't solve.
        sim_tb.build.BuildError: the simulator can't be built.
    """
    problem = job.problem
    updates = problem.updates * job.iterations
    if updates < 1:
        raise CosimError("nothing to update: give at least two pixels and one iteration")
    layout = BpLayout.of(problem)
    program = job.assembled(config.scratchpad_bytes)
    golden = iterate(problem, job.iterations)
    with DramImage(1 << config.address_bits) as memory:
        pack(problem, layout, memory, iterations=job.iterations)
        with PeSimulation(config, trace=trace) as simulation:
            result = simulation.run(
                Job(
                    words=program.words,
                    image=memory,
                    memory=job.memory,
                    parameters=layout.parameters,
                    max_cycles=_START_LIMIT + updates * _CYCLES_PER_UPDATE_LIMIT,
                ),
                progress,
            )
        if result.state is not PeState.HALTED:
            raise CosimError(f"the kernel faulted at word {result.pc}: {result.cause.name}")
        messages = unpack(layout, memory)
    differing = int(np.count_nonzero(messages != golden))
    # Without counters, what the host sees: a few cycles of launch and end more.
    cycles = result.counters["CYCLES"] or result.cycles
    return BpOutcome(
        match=differing == 0,
        differing=differing,
        updates=updates,
        cycles=cycles,
        messages=messages,
        result=result,
    )
