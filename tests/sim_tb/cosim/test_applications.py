"""The applications on Verilog: what the golden models demand, at the speed of the datapath."""

from collections.abc import Iterator

import numpy as np
import pytest

from microkernels.apps.digits import CLASSES, load_digits
from microkernels.apps.kmeans import FRACTION, kmeans_job, moved_centres
from microkernels.common.fixed_point import Elements
from microkernels.runtime.job import KernelJob, simulate
from microkernels.suite import Application, ApplicationError, choose, suite
from sim_tb.cosim.engine import MemoryBehaviour, PeSimulation
from sim_tb.cosim.kernels import run_work
from soc.generate.presets import preset

HOSTILE = MemoryBehaviour(
    latency=3, extra_latency=60, bandwidth=128, stall=0.4, gap=0.4, out_of_order=True, seed=5
)
#: Least operations a cycle that an application asks for and gets, far below what it reaches.
LEAST = {
    "matrix-addition": 1.3,
    "matrix-multiplication": 6.5,
    "matrix-transposition": 0.5,
    "image-convolution": 4.0,
    "bitonic-sort": 0.7,
    "median-pooling": 4.2,
    "k-means": 5.0,
    "gaussian-elimination": 0.3,
}


@pytest.fixture(scope="module")
def engine() -> Iterator[PeSimulation]:
    with PeSimulation(preset("pe")) as running:
        yield running


@pytest.fixture(scope="module")
def logistic_engine() -> Iterator[PeSimulation]:
    with PeSimulation(preset("pe-logistic")) as running:
        yield running


def by_name(item: Application) -> str:
    return item.name


@pytest.mark.parametrize("application", suite().values(), ids=by_name)
def test_golden_model_simulator_and_verilog_agree(
    application: Application, request: pytest.FixtureRequest
) -> None:
    fixture = {"pe": "engine", "pe-logistic": "logistic_engine"}[application.preset]
    simulation: PeSimulation = request.getfixturevalue(fixture)
    cycles, operations = 0, 0
    for job in application.jobs:
        outputs, hazards = simulate(job, instructions=simulation.config.instructions)
        assert np.array_equal(outputs, job.expected)
        assert [str(hazard) for hazard in hazards] == []
        assert np.any(job.expected != job.expected.flat[0])
        outcome = run_work(job, simulation, memory=MemoryBehaviour(latency=40))
        assert outcome.match
        assert run_work(job, simulation, memory=HOSTILE).match
        cycles += outcome.cycles
        operations += job.operations
    assert operations / cycles >= LEAST.get(application.name, 0)


def test_applications_have_workloads_of_their_own() -> None:
    for item in suite().values():
        assert [launch.program for launch, _ in item.workloads] == [
            job.program for job in item.jobs
        ]
        assert all(any(memory) for _, memory in item.workloads)
        assert len(set(item.programs)) == len(item.programs)


def test_host_and_engine_find_clusters_of_digits(engine: PeSimulation) -> None:
    """The loop as it is: what the engine assigned is what the host moves the centres by."""
    images = (load_digits()[0][0][:110] * 16).astype(np.int16).reshape(110, -1)
    points, centres = images[CLASSES:], images[:CLASSES] << FRACTION

    def rounds(count: int, centres: Elements) -> tuple[Elements, Elements]:
        found = np.zeros(0)
        for _ in range(count):
            job: KernelJob = kmeans_job(points, centres)
            outcome = run_work(job, engine)
            assert outcome.match
            found = outcome.outputs
            centres = moved_centres(points, found, centres)
        return found, centres

    def spread(found: Elements, centres: Elements) -> float:
        return float(((points - centres[found] / (1 << FRACTION)) ** 2).sum())

    first, moved = rounds(1, centres)
    last, final = rounds(4, moved)
    assert spread(last, final) < spread(first, moved) < spread(first, centres)


def test_unknown_application() -> None:
    with pytest.raises(ApplicationError, match="unknown application 'sort'; there are: matrix-add"):
        choose(["bp", "sort"])
    assert [item.name for item in choose(["bp", "k-means"])] == ["k-means", "bp"]
