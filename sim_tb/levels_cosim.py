"""Hierarchical belief propagation on the Verilog of a vault, phase by phase."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hdl.ports import PeState
from isa.image import DramImage
from kernels.bp_levels_job import BpLevelsJob
from kernels.bp_problem import Messages
from soc.config import VaultTileConfig

from .cosim import CosimError
from .vault_cosim import VaultResult, run_vault

__all__ = ["LevelsOutcome", "cosim_vault_levels"]

#: No phase takes so long: cycles for each message or data cost of the fine level and iteration.
_CYCLES_PER_VECTOR = 5_000
_START_LIMIT = 100_000


@dataclass(frozen=True, kw_only=True)
class LevelsOutcome:
    """What came of a run.

    Attributes:
        match: every message equals the golden model's.
        messages: of the fine level, as the engines left them in memory.
        phases: result of each phase (:attr:`kernels.bp_levels_job.Phase.name`), in order.
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
        sim_tb.build.BuildError: the simulator can't be built.
    """
    if (
        job.ring.vaults != 1
        or job.pes > config.pes
        or job.scratchpad_bytes != config.pe.scratchpad_bytes
        or job.layout.coarse.end > config.vault.size_bytes
    ):
        raise CosimError(
            f"the job is for {job.ring.vaults} vaults of {job.pes} engines with "
            f"{job.scratchpad_bytes} bytes of scratchpad and {job.layout.coarse.end} bytes of DRAM;"
            f" the vault has {config.pes}, {config.pe.scratchpad_bytes}, {config.vault.size_bytes}"
        )
    rounds = 1 + job.iterations + job.coarse_iterations
    max_cycles = _START_LIMIT + _CYCLES_PER_VECTOR * job.problem.data_costs.size * rounds
    phases = {}
    with DramImage(config.vault.size_bytes) as memory:
        for address, data in job.writes():
            memory.write(address, data)
        for phase in job.phases:
            result = run_vault(
                phase.program,
                memory,
                config=config,
                max_cycles=max_cycles,
                active=job.pes,
                parameters=phase.parameters,
                progress=progress,
            )
            for pe in result.pes:
                if pe.state is not PeState.HALTED:
                    raise CosimError(
                        f"{phase.name} faulted on engine {pe.slot} at word {pe.pc}: {pe.cause.name}"
                    )
            phases[phase.name] = result
        messages = job.result({place: memory.read(place, size) for place, size in job.reads()})
    match = bool(np.array_equal(messages, job.expected()))
    return LevelsOutcome(match=match, messages=messages, phases=phases)
