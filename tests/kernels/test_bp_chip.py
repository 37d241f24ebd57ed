"""BP-M on several vaults, all PEs interleaved on instruction set simulators, against the golden
model."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.image import DramImage
from kernels.bp_chip import BpChipJob
from kernels.bp_problem import BpProblem
from kernels.interleave import Schedule, Together, in_bursts
from kernels.vault_ring import VaultRing

ADDRESS_BITS = 19


def problem_of(seed: int, width: int, height: int, labels: int, bits: int = 16) -> BpProblem:
    rng = np.random.default_rng(seed)
    limit = 60 if bits == 8 else 300
    return BpProblem(
        rng.integers(-limit, limit, (height, width, labels)),
        rng.integers(-limit, limit, (labels, labels)),
        bits,
    )


def job_of(problem: BpProblem, columns: int, rows: int, pes: int, iterations: int = 1) -> BpChipJob:
    ring = VaultRing(columns=columns, rows=rows, address_bits=ADDRESS_BITS)
    return BpChipJob(problem=problem, iterations=iterations, ring=ring, pes=pes)


def load(job: BpChipJob) -> DramImage:
    memory = DramImage(job.ring.vaults << ADDRESS_BITS)
    for address, data in job.writes():
        memory.write(address, data)
    return memory


def start(job: BpChipJob, memory: DramImage, seed: int = 0) -> Together:
    return Together(
        job.program,
        memory,
        members=job.pes,
        ring=job.ring,
        parameters=job.parameters,
        seed=seed,
    )


def right(job: BpChipJob, schedule: Schedule, seed: int = 0) -> bool:
    """Whether all messages are right; asserts that all PEs ended, went no further than a neighbour
    and ran into no hazard."""
    with load(job) as memory:
        together = start(job, memory, seed)
        outcomes = together.run(schedule)
        assert {outcome.state for outcome in outcomes} == {"halted"}
        assert set(together.traffic) <= {0, 1}
        for model in together.models:
            assert [str(hazard) for hazard in model.hazards] == []
        data = {address: memory.read(address, length) for address, length in job.reads()}
        return bool((job.result(data) == job.expected()).all())


GRIDS = [(2, 2, 1), (4, 2, 2), (3, 2, 1), (1, 1, 4), (3, 1, 2), (1, 2, 3), (3, 3, 1)]


@settings(max_examples=28, deadline=None, derandomize=True)
@given(
    grid=st.sampled_from(GRIDS),
    seed=st.integers(0, 1 << 20),
    width=st.integers(1, 13),
    height=st.integers(1, 13),
    labels=st.sampled_from([3, 8, 16]),
    bits=st.sampled_from([8, 16, 32]),
    iterations=st.integers(1, 2),
    longest=st.sampled_from([1, 30, 1000]),
)
def test_equals_the_golden_model_under_any_timing(
    grid: tuple[int, int, int],
    seed: int,
    width: int,
    height: int,
    labels: int,
    bits: int,
    iterations: int,
    longest: int,
) -> None:
    job = job_of(problem_of(seed, width, height, labels, bits), *grid, iterations)
    assert right(job, in_bursts(seed, longest), seed=seed)
