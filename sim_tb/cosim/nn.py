"""Layers of neural networks on Verilog, of one engine or of a vault, held against golden models."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from isa.image import DramImage
from microkernels.common.fixed_point import Elements
from microkernels.nn.job import NnJob
from pe.config import PeConfig
from pe.interface import PeState
from sim_tb.runner.cache import fingerprint
from soc.tile.config import VaultTileConfig

from .engine import CosimError, CosimResult, Job, MemoryBehaviour, PeSimulation
from .vault import VaultResult, run_vault

__all__ = ["NnOutcome", "cosim_nn", "cosim_vault_nn", "job_key"]

ResultT = TypeVar("ResultT", CosimResult, VaultResult)

#: No layer takes longer: hours of simulation.
_MAX_CYCLES = 1 << 36


@dataclass(frozen=True, kw_only=True)
class NnOutcome(Generic[ResultT]):
    """What came of a run.

    Attributes:
        differing: output elements that differ from the golden model's.
        cycles: of the program; of several engines, till the last ends.
        outputs: as the engines left them in memory.
        result: of the cosimulation.
    """

    differing: int
    cycles: int
    outputs: Elements
    result: ResultT

    @property
    def match(self) -> bool:
        """Every output equals the golden model's."""
        return self.differing == 0


def job_key(job: NnJob) -> str:
    """Tells jobs apart, by program, data and expected outputs."""
    start = repr((job.name, job.program.words, job.parameters, job.sharers))
    with DramImage(job.end) as image:
        job.prepare(image)
        return fingerprint(start, image.read(0, job.end), job.expected.tobytes())


def cosim_nn(
    job: NnJob, simulation: PeSimulation, *, memory: MemoryBehaviour | None = None
) -> NnOutcome[CosimResult]:
    """Run a job of one PE in an open simulation and compare with the golden model.

    Parameters:
        memory: how the memory beside the engine answers.

    Raises:
        CosimError: the program faulted or did not end, or the job is one of several PEs.
    """
    if job.sharers != 1:
        raise CosimError(f"a job of {job.sharers} engines can't run on one")
    config: PeConfig = simulation.config
    with DramImage(1 << config.address_bits) as image:
        job.prepare(image)
        result = simulation.run(
            Job(
                words=job.program.words,
                image=image,
                memory=memory or MemoryBehaviour(),
                parameters=job.parameters,
                max_cycles=_MAX_CYCLES,
            )
        )
        if result.state is not PeState.HALTED:
            raise CosimError(f"{job.name} faulted at word {result.pc}: {result.cause.name}")
        cycles = result.counters["CYCLES"] or result.cycles
        return NnOutcome(
            differing=job.differing(image),
            cycles=cycles,
            outputs=job.outputs(image),
            result=result,
        )


def cosim_vault_nn(
    job: NnJob, config: VaultTileConfig, *, progress: Callable[[int], None] | None = None
) -> NnOutcome[VaultResult]:
    """Run a job on the engines of a vault and compare with the golden model.

    Parameters:
        config: of the vault; the job's PEs are its first.
        progress: called now and then with the cycles so far.

    Raises:
        CosimError: an engine faulted or did not end, or the job does not fit the vault.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    if job.end > config.vault.size_bytes:
        raise CosimError(
            f"{job.name} needs {job.end} bytes, the vault has {config.vault.size_bytes}"
        )
    with DramImage(config.vault.size_bytes) as image:
        job.prepare(image)
        result = run_vault(
            job.program,
            image,
            config=config,
            max_cycles=_MAX_CYCLES,
            active=job.sharers,
            parameters=job.parameters,
            progress=progress,
        )
        for pe in result.pes:
            if pe.state is not PeState.HALTED:
                raise CosimError(
                    f"{job.name} faulted on engine {pe.slot} at word {pe.pc}: {pe.cause.name}"
                )
        cycles = max(pe.counters["CYCLES"] for pe in result.pes) or result.cycles
        return NnOutcome(
            differing=job.differing(image),
            cycles=cycles,
            outputs=job.outputs(image),
            result=result,
        )
