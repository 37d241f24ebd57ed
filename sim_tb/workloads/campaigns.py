"""Campaigns on engines and vaults: resets at random cycles, and memories that fail.

What a campaign does in a point follows from its seed and the point's number.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from isa.image import DramImage
from microkernels.runtime.job import KernelJob
from pe.config import PeConfig
from sim_tb.cosim.engine import CosimError, PeSimulation, WasReset
from sim_tb.cosim.vault import VaultSimulation
from sim_tb.random.comparison import check_programs, compare, fill, program_job
from sim_tb.random.programs import random_program
from soc.tile.config import VaultTileConfig


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Outcome of a campaign.

    Attributes:
        points: disturbed runs. hung: those, or runs after them, that did not end. lost: those after
            which something was wrong. first: what was wrong first, with its point; "": nothing.
    """

    points: int
    hung: int
    lost: int
    first: str = ""


def tally(failures: Iterator[str]) -> Campaign:
    """The outcome of a campaign that yields, for each point, what went wrong: "" for nothing, and
    text with the word "hangs" or "still" if something did not end."""
    points = hung = lost = 0
    first = ""
    for points, failure in enumerate(failures, 1):
        late = "hangs" in failure or "still" in failure
        hung += late
        lost += bool(failure) and not late
        if failure and not first:
            first = f"point {points}: {failure}"
    return Campaign(points=points, hung=hung, lost=lost, first=first)


def engine_resets(config: PeConfig, points: int, seed: int, *, netlist: str = "") -> Campaign:
    """Reset an engine and its memory while a random program is loaded, runs, or has just ended; the
    next random program must leave what the simulator says.

    Parameters:
        netlist: see :class:`sim_tb.cosim.engine.PeSimulation`.
    """
    return tally(_engine_resets(config, points, seed, netlist))


def _engine_resets(config: PeConfig, points: int, seed: int, netlist: str) -> Iterator[str]:
    rng = random.Random(seed)
    size = 1 << config.address_bits
    with (
        PeSimulation(config, netlist=netlist) as simulation,
        DramImage(size) as image,
        DramImage(size) as other,
    ):
        program = random_program(seed, config)
        fill(image, program)
        (result,) = simulation.run_many([program_job(program, image, simulation, reset=True)])
        for number in range(1, points + 1):
            cycles = 0 if isinstance(result, CosimError) else result.engine.elapsed_cycles
            after = rng.randrange(len(program.words) + cycles)
            fill(image, program)
            job = program_job(program, image, simulation, reset=False, reset_after=after)
            (result,) = simulation.run_many([job])
            failure = "" if isinstance(result, WasReset) else f"not reset: {result}"
            program = random_program(seed + number, config)
            fill(image, program)
            fill(other, program)
            (result,) = simulation.run_many([program_job(program, image, simulation, reset=False)])
            lines, _ = compare(program, config, result, image, other)
            yield failure or (f"reset after {after} cycles: {lines[0]}" if lines else "")


def engine_errors(config: PeConfig, points: int, seed: int) -> Campaign:
    """Random programs whose memory answers some addresses with errors, of one to four beats; at
    least ``points`` of them meet one. What they leave must be what the simulator allows."""
    met = hung = lost = 0
    first = ""
    with TemporaryDirectory() as folder:
        while met < points and not first:
            report = check_programs(
                config, programs=points, seed=seed, folder=Path(folder), disturbed=1.0
            )
            met += report.memory_errors
            seed += report.programs
            for one in report.different:
                late = "hangs" in one.what[0]
                hung += late
                lost += not late
                first = first or f"seed {one.seed}: {one.what[0]}"
    return Campaign(points=met, hung=hung, lost=lost, first=first)


def vault_resets(config: VaultTileConfig, job: KernelJob, points: int, seed: int) -> Campaign:
    """Reset a vault, with its engines and its DRAM, in a kernel; the kernel, run again, must leave
    what its golden model says.

    Parameters:
        job: of one launch, for all engines of ``config``.
    """
    return tally(_vault_resets(config, job, points, seed))


def _vault_resets(config: VaultTileConfig, job: KernelJob, points: int, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    (launch,) = job.launches
    with VaultSimulation(config) as vault, DramImage(config.memory_bytes) as image:
        job.prepare(image)
        whole = vault.run(launch, image, engines=job.pes)
        cycles = len(launch.program.words) + max(end.elapsed_cycles for end in whole.engines)
        for _ in range(points):
            after = rng.randrange(cycles)
            failure = "not reset"
            try:
                vault.run(launch, image, engines=job.pes, reset_after=after)
            except WasReset:
                failure = ""
            job.prepare(image)
            try:
                vault.run(launch, image, engines=job.pes, reset=False)
                exact = np.array_equal(job.outputs(image), job.expected)
                wrong = "" if exact else "outputs differ"
            except CosimError as error:
                wrong = str(error)
            yield failure or (f"reset after {after} cycles: {wrong}" if wrong else "")
