"""Belief propagation on the engine's Verilog: how fast it is, and that it is right to the bit."""

from collections.abc import Iterator

import numpy as np
import pytest

from isa.image import DramImage
from isa.run import Launch
from microkernels.bp.contents import pack, unpack
from microkernels.bp.golden import iterate
from microkernels.bp.jobs import bp_job
from microkernels.bp.kernel import MatrixPlan, most_labels
from microkernels.bp.layout import BpLayout
from microkernels.bp.problem import BpProblem
from microkernels.data.stereo import motorcycle
from sim_tb.cosim.engine import MemoryBehaviour, PeSimulation
from sim_tb.cosim.kernels import run_on
from sim_tb.harness.engine import EngineIdentity
from soc.generate.presets import preset

PE = preset("pe")
ITERATIONS = 2

HOSTILE = MemoryBehaviour(
    latency=3, extra_latency=60, bandwidth=128, stall=0.4, gap=0.4, out_of_order=True, seed=5
)


@pytest.fixture(scope="module")
def simulation() -> Iterator[PeSimulation]:
    with PeSimulation(PE) as running:
        yield running


@pytest.mark.parametrize(
    ("latency", "sums", "least", "limit"),
    # 16 rows of 4 beats and 4 vector instructions of 4 beats. With sums, 2 in three of four sweeps.
    # A shorter latency takes no longer.
    [
        (60, False, 80, 84),
        (60, True, 74, 75),
        pytest.param(20, False, 80, 82, marks=pytest.mark.slow),
        pytest.param(20, True, 74, 75, marks=pytest.mark.slow),
    ],
)
def test_stereo_tile_takes_little_more_than_the_datapath(
    latency: int, sums: bool, least: float, limit: float
) -> None:
    problem = motorcycle(64, 48, 16).problem
    outcome = run_on(bp_job(problem, sums=sums), PE, memory=MemoryBehaviour(latency=latency))
    assert outcome.match
    assert outcome.updates == problem.updates
    assert least <= outcome.cycles_per_update <= limit


@pytest.mark.parametrize(
    ("width", "height", "labels", "bits", "memory"),
    [
        (5, 3, 1, 8, MemoryBehaviour(latency=1)),
        (7, 5, 3, 16, HOSTILE),
        (2, 9, 17, 8, HOSTILE),
        (9, 2, 20, 32, MemoryBehaviour(latency=150, stall=0.2, out_of_order=True)),
        (1, 6, 8, 16, HOSTILE),
        (3, 3, most_labels(8, PE.scratchpad_bytes), 8, MemoryBehaviour(latency=40, gap=0.3)),
        (3, 4, most_labels(16, PE.scratchpad_bytes), 16, HOSTILE),
        (4, 3, most_labels(32, PE.scratchpad_bytes), 32, HOSTILE),
    ],
)
def test_random_problems_are_exact(
    simulation: PeSimulation,
    width: int,
    height: int,
    labels: int,
    bits: int,
    memory: MemoryBehaviour,
) -> None:
    """Any matrix, and values so large that additions saturate."""
    rng = np.random.default_rng([width, height, labels, bits])
    limit = (1 << (bits - 1)) - 1
    problem = BpProblem(
        rng.integers(-limit // 2, limit // 2, (height, width, labels)),
        rng.integers(-limit // 4, limit // 4, (labels, labels)),
        bits,
    )
    layout = BpLayout.of(problem, MatrixPlan.of(problem), base=4096)
    with DramImage(1 << PE.address_bits) as image:
        pack(problem, layout, image, iterations=ITERATIONS)
        launch = Launch(program=layout.program, max_cycles=2_000_000, parameters=layout.parameters)
        identity = EngineIdentity(pe_index=3, pe_count=4)
        result = simulation.run(launch, image, memory=memory, identity=identity)
        messages = unpack(layout, image)
    assert result.engine.halted
    np.testing.assert_array_equal(messages, iterate(problem, ITERATIONS))
