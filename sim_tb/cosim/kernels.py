"""Kernels on the Verilog of an engine, a vault or a chip, held against their golden models."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from isa.image import DramImage
from isa.run import RunResult
from microkernels.bp.jobs import bp_job
from microkernels.bp.problem import BpProblem
from microkernels.bp.tiles import TileCut
from microkernels.common.fixed_point import Elements
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import ChipEngines, VaultRing
from pe.config import PeConfig
from sim_tb.runner.cache import fingerprint
from sim_tb.timed.engine.pe_model import PeModel
from soc.chip.config import ChipConfig
from soc.host.driver import Host
from soc.host.transport import Blocking, run
from soc.tile.config import VaultTileConfig

from .checkpoint import Checkpoint
from .chip import run_launch
from .chip_session import AXI_LATENCY, Periods
from .engine import CosimError, MemoryBehaviour, PeSimulation
from .machine import Machine, open_chip, open_engine, open_vault

__all__ = [
    "KernelOutcome",
    "chip_bp_job",
    "chip_engines",
    "chip_ring",
    "cosim_chip",
    "cosim_engine",
    "cosim_job",
    "cosim_vault",
    "job_key",
    "launches_key",
]


@dataclass(frozen=True, kw_only=True)
class KernelOutcome:
    """Result of a job.

    Attributes:
        job: as it was given.
        outputs: as the engines left them in memory.
        results: of the cosimulation, by name of the launch.
    """

    job: KernelJob
    outputs: Elements
    results: Mapping[str, RunResult]

    @property
    def cycles(self) -> int:
        """Cycles of the programs; of several engines, till the last ends."""
        return sum(result.program_cycles for result in self.results.values())

    @property
    def pes(self) -> int:
        """Engines that shared the work."""
        return self.job.pes * self.job.vaults

    @cached_property
    def differing(self) -> int:
        """Output elements that differ from the golden model's."""
        return self.job.differing(self.outputs)

    @property
    def match(self) -> bool:
        """Every output equals the golden model's."""
        return self.differing == 0

    @property
    def result(self) -> RunResult:
        """Result of the only launch."""
        (result,) = self.results.values()
        return result

    @property
    def updates(self) -> int:
        """Messages of belief propagation that were updated."""
        return self.job.updates or 0

    @property
    def cycles_per_update(self) -> float:
        """Cycles of an engine for one message, the mean of all directions; the datapath's limit for
        16 labels of 16 bits is 80."""
        return self.cycles * self.pes / self.updates


def job_key(job: KernelJob) -> str:
    """Identifies a job of one launch by program, data and expected outputs."""
    start = repr((job.name, job.program.words, job.parameters, job.pes))
    with DramImage(job.end) as image:
        job.prepare(image)
        return fingerprint(start, image.read(0, job.end), job.expected.tobytes())


def launches_key(job: KernelJob) -> str:
    """Identifies a job by its launches and by the contents of memory before, in any vault."""
    launches = [repr((each.name, each.parameters, each.program.words)) for each in job.launches]
    held = [part for address, data in job.segments() for part in (str(address), data)]
    return fingerprint(repr((job.name, job.pes)), *launches, *held)


def _check(
    job: KernelJob,
    *,
    vaults: int,
    pes: int,
    room: int,
    instructions: frozenset[str] | None = None,
) -> None:
    """Refuse a job for another machine than one of so many vaults, with so many engines each and
    so many bytes of memory each.

    Parameters:
        instructions: keys of those that the engines have; None: a launch may find out.
    """
    if job.updates == 0:
        raise CosimError("nothing to update: give at least two pixels and one iteration")
    if job.vaults != vaults:
        raise CosimError(f"a job of {job.vaults} vault(s) can't run on {vaults}")
    if not 1 <= job.pes <= pes:
        raise CosimError(f"{job.pes} engines can't work in a vault of {pes}")
    if job.end > room:
        raise CosimError(f"{job.name} needs {job.end} bytes, the vault has {room}")
    if instructions is not None:
        job.check_instructions(instructions)


def cosim_job(
    job: KernelJob,
    simulation: PeSimulation | PeModel,
    *,
    memory: MemoryBehaviour | None = None,
    memory_bytes: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> KernelOutcome:
    """Run a job of one PE in an open simulation and compare with the golden model.

    Parameters:
        memory: how the memory beside the engine answers. memory_bytes: its size; None: all that the
            engine can address. That of a trimmed engine may be larger, where the job has data that
            the program does not touch.
        progress: called now and then with the cycles of the launch so far.

    Raises:
        CosimError: a program faulted or did not end, the job is one of several PEs, there is
            nothing to update, or the memory has no room.
    """
    config: PeConfig = simulation.config
    size = memory_bytes or 1 << config.address_bits
    _check(job, vaults=1, pes=1, room=size)
    results = {}
    with DramImage(size) as image:
        job.prepare(image)
        for launch in job.launches:
            results[launch.name] = result = simulation.run(
                launch, image, memory=memory, progress=progress
            )
            for end in result.faults:
                raise CosimError(f"{job.name} faulted at word {end.pc}: {end.cause.name}")
        outputs = job.outputs(image)
    return KernelOutcome(job=job, outputs=outputs, results=results)


def cosim_engine(
    job: KernelJob,
    config: PeConfig,
    *,
    on: Machine = "rtl",
    memory: MemoryBehaviour | None = None,
    trace: Path | None = None,
    ports_only: bool = False,
    progress: Callable[[int], None] | None = None,
) -> KernelOutcome:
    """:func:`cosim_job` in a simulation of its own.

    Parameters:
        on: the Verilog, or the timing model.
        trace: waveform file, ``.vcd`` or ``.fst``. ports_only: of the engine's ports alone.

    Raises:
        CosimError: as :func:`cosim_job` and :func:`sim_tb.cosim.machine.open_engine`.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    with open_engine(config, on, trace=trace, ports_only=ports_only) as simulation:
        return cosim_job(job, simulation, memory=memory, progress=progress)


def cosim_vault(
    job: KernelJob,
    config: VaultTileConfig,
    *,
    on: Machine = "rtl",
    trace: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> KernelOutcome:
    """Run a job on the engines of a vault and compare with the golden model.

    Parameters:
        config: of the vault; the job's PEs are its first, the others stay idle.
        on: the Verilog, or the timing model.
        trace, progress: as for :func:`cosim_engine`.

    Raises:
        CosimError: an engine faulted or did not end, the job does not fit the vault, or there is
            nothing to update.
        KernelError: a program has an instruction that the engines lack.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    _check(
        job,
        vaults=1,
        pes=config.pes,
        room=config.vault.size_bytes,
        instructions=config.pe.instructions,
    )
    results = {}
    with (
        DramImage(config.vault.size_bytes) as image,
        open_vault(config, on, trace=trace) as machine,
    ):
        job.prepare(image)
        for launch in job.launches:
            results[launch.name] = result = machine.run(
                launch, image, engines=job.pes, progress=progress
            )
            for end in result.faults:
                raise CosimError(
                    f"{job.name} faulted on engine {end.slot} at word {end.pc}: {end.cause.name}"
                )
        outputs = job.outputs(image)
    return KernelOutcome(job=job, outputs=outputs, results=results)


def chip_ring(config: ChipConfig) -> VaultRing:
    """The vaults of a chip."""
    grid = config.network
    return VaultRing(columns=grid.columns, rows=grid.rows, address_bits=grid.address_bits)


def chip_engines(config: ChipConfig) -> ChipEngines:
    """The engines of a chip, as planners of networks know them."""
    return ChipEngines(
        ring=chip_ring(config),
        pes=config.tile.pes,
        scratchpad_bytes=config.pe.scratchpad_bytes,
        instruction_words=config.pe.instruction_words,
    )


def chip_bp_job(
    problem: BpProblem, iterations: int, config: ChipConfig, *, cut: TileCut | None = None
) -> KernelJob:
    """Belief propagation on all engines of a chip; parameters and errors as of
    :func:`microkernels.bp.jobs.bp_job`."""
    return bp_job(
        problem,
        iterations,
        ring=chip_ring(config),
        pes=config.tile.pes,
        scratchpad_bytes=config.pe.scratchpad_bytes,
        cut=cut,
    )


class _HostMemory:
    """The DRAM of a simulated chip, through the chip's AXI port."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def write(self, address: int, data: bytes) -> None:
        run(self._host.write(address, data))

    def read(self, address: int, n: int) -> bytes:
        return run(self._host.read(address, n))


def cosim_chip(
    job: KernelJob,
    config: ChipConfig,
    *,
    on: Machine = "rtl",
    counters: bool = True,
    preload: bool = False,
    outer: bool = False,
    trace: Path | None = None,
    checkpoint: Checkpoint | None = None,
    begins: Callable[[str], None] | None = None,
    progress: Callable[[int], None] | None = None,
    axi_latency: int = AXI_LATENCY,
    periods: Periods | None = None,
) -> KernelOutcome:
    """Run a job on the engines of a chip and compare with the golden model.

    The host loads the programs, launches and waits through the chip's AXI ports; it also writes the
    data and reads the outputs there, unless ``preload`` is set.

    Parameters:
        on: the Verilog, or the timing model.
        preload: put the data into the DRAM, and take the outputs from it, without the chip: many
            take longer to write at 8 bytes a cycle than to work on.
        counters: as for :func:`sim_tb.cosim.chip.run_launch`.
        outer, trace, progress, axi_latency, periods: as for :func:`sim_tb.cosim.machine.open_chip`.
        checkpoint: written after launches, at most every 20 seconds; launches that it has are not
            run again. Every launch then begins with a reset of the chip, but not of its DRAM, so
            that a run takes the same cycles whether it was interrupted or not. The caller removes
            it. Only with ``preload``.
        begins: called with the name of each launch before it runs.

    Raises:
        CosimError: an engine faulted or did not end, the job is for another chip, there is
            nothing to update, a checkpoint without ``preload``, or ``preload`` on a chip with
            preload memories (:class:`memory.preload.Preload`).
        KernelError: a program has an instruction that the engines lack.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    room = 1 << config.network.address_bits
    _check(
        job,
        vaults=config.vaults,
        pes=config.tile.pes,
        room=room,
        instructions=config.pe.instructions,
    )
    if preload and config.tile.vault.preload_bytes:
        raise CosimError(
            "data put into the DRAM are not in a preload memory: the host has to write them"
        )
    if checkpoint is not None and not preload:
        raise CosimError("a run with checkpoints has to be preloaded")
    results: dict[str, RunResult] = {}
    surroundings: Any = {"outer": outer, "trace": trace, "progress": progress}
    with (
        DramImage(config.memory_bytes) as image,
        open_chip(
            config, image, on, axi_latency=axi_latency, periods=periods, **surroundings
        ) as chip,
    ):
        memory = image if preload else _HostMemory(Host(Blocking(chip)))
        if checkpoint is not None:
            results = checkpoint.load(image)
        if not results:
            job.prepare(memory)
        ended = set(results)
        for launch in job.launches:
            if launch.name in ended:
                continue
            if begins is not None:
                begins(launch.name)
            if checkpoint is not None:
                chip.reset()
            results[launch.name] = result = run_launch(chip, launch, counters=counters)
            if result.faults:
                raise CosimError("; ".join(map(str, result.faults)))
            if checkpoint is not None:
                checkpoint.save(image, results)
        outputs = job.outputs(memory)
    return KernelOutcome(job=job, outputs=outputs, results=results)
