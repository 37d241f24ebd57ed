"""Hierarchical belief propagation on the Verilog of a vault, phase by phase."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isa.image import DramImage
from microkernels.bp.contents import contents
from microkernels.bp.levels import BLOCK, coarse_problem, copied
from microkernels.bp.levels_job import BpLevelsJob, Phase
from microkernels.bp.problem import Messages
from pe.interface import PeState
from soc.tile.config import VaultTileConfig

from .engine import CosimError
from .vault import VaultResult, run_vault

__all__ = ["LevelsOutcome", "cosim_vault_between", "cosim_vault_levels"]

#: No phase takes so long: cycles for each message or data cost of the fine level and iteration.
_CYCLES_PER_VECTOR = 5_000
_START_LIMIT = 100_000


@dataclass(frozen=True, kw_only=True)
class LevelsOutcome:
    """What came of a run.

    Attributes:
        match: every message equals the golden model's.
        messages: of the fine level, as the engines left them in memory.
        phases: result of each phase (:attr:`microkernels.bp.levels_job.Phase.name`), in order.
    """

    match: bool
    messages: Messages
    phases: dict[str, VaultResult]


def cosim_vault_levels(
    job: BpLevelsJob,
    config: VaultTileConfig,
    *,
    progress: Callable[[int], None] | None = None,
) -> LevelsOutcome:
    """Run all phases of ``job`` on a vault, one after the other on the same memory.

    Parameters:
        job: for one vault and at most its engines; its scratchpad must be theirs.
        config: of the vault.
        progress: called now and then with the cycles of the phase so far.

    Raises:
        CosimError: a job for another machine, or an engine that faulted or did not end.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    _check(job, config, vaults=1)
    phases = {}
    with DramImage(config.vault.size_bytes) as memory:
        for address, data in job.writes():
            memory.write(address, data)
        for phase in job.phases:
            phases[phase.name] = _launch(phase, job, memory, config, progress)
        messages = job.result({place: memory.read(place, size) for place, size in job.reads()})
    match = bool(np.array_equal(messages, job.expected()))
    return LevelsOutcome(match=match, messages=messages, phases=phases)


def cosim_vault_between(
    job: BpLevelsJob, coarse: Messages, config: VaultTileConfig
) -> dict[str, VaultResult]:
    """Run construct and copy on the first vault of a ring: they need no other vault.

    Parameters:
        job: for a ring of any size and a problem of even sides, whose blocks are all full;
            otherwise as of :func:`cosim_vault_levels`.
        coarse: messages of the coarse level, from which copy begins.
        config: of the vault.

    Returns:
        The results of ``construct`` and ``copy``.

    Raises:
        CosimError: as :func:`cosim_vault_levels`, or any byte of the vault's tiles that is not as
            the golden model has it.
        KernelError: messages of a wrong shape.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    _check(job, config, vaults=job.ring.vaults)
    layout, problem = job.layout, job.problem
    if problem.width % BLOCK or problem.height % BLOCK:
        raise CosimError(f"{problem.width} x {problem.height} pixels: both sides must be even")
    small = coarse_problem(problem, job.smoothness)
    begun = copied(problem, coarse)
    expected = [
        *contents(small, layout.coarse, iterations=job.coarse_iterations, messages=coarse),
        *contents(problem, layout.fine, iterations=job.iterations, messages=begun),
    ]
    phases = {phase.name: phase for phase in job.phases}
    found = {}
    with DramImage(config.vault.size_bytes) as memory:
        for address, data in job.writes(coarse):
            if address < config.vault.size_bytes:
                memory.write(address, data)
        for name in ("construct", "copy"):
            found[name] = _launch(phases[name], job, memory, config, None)
        for address, data in expected:
            if address < config.vault.size_bytes and memory.read(address, len(data)) != data:
                raise CosimError(f"construct or copy: wrong bytes from address {address} on")
    return found


def _check(job: BpLevelsJob, config: VaultTileConfig, *, vaults: int) -> None:
    end = job.layout.coarse.end
    if (
        job.ring.vaults != vaults
        or job.pes > config.pes
        or job.scratchpad_bytes != config.pe.scratchpad_bytes
        or end > config.vault.size_bytes
    ):
        raise CosimError(
            f"the job is for {job.ring.vaults} vaults of {job.pes} engines with "
            f"{job.scratchpad_bytes} bytes of scratchpad and {end} bytes of DRAM; "
            f"the vault has {config.pes}, {config.pe.scratchpad_bytes}, {config.vault.size_bytes}"
        )


def _launch(
    phase: Phase,
    job: BpLevelsJob,
    memory: DramImage,
    config: VaultTileConfig,
    progress: Callable[[int], None] | None,
) -> VaultResult:
    rounds = 1 + job.iterations + job.coarse_iterations
    result = run_vault(
        phase.program,
        memory,
        config=config,
        max_cycles=_START_LIMIT + _CYCLES_PER_VECTOR * job.problem.data_costs.size * rounds,
        active=job.pes,
        parameters=phase.parameters,
        progress=progress,
    )
    for pe in result.pes:
        if pe.state is not PeState.HALTED:
            raise CosimError(
                f"{phase.name} faulted on engine {pe.slot} at word {pe.pc}: {pe.cause.name}"
            )
    return result
