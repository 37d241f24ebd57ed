"""LSTM on the Verilog of an engine with the logistic unit: every bit, and the time of ESE's."""

from collections.abc import Iterator

import numpy as np
import pytest

from microkernels.nn.jobs import lstm_job
from microkernels.nn.lstm_shape import LstmShape
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import ONE_ENGINE
from sim_tb.cosim.engine import MemoryBehaviour, PeSimulation
from sim_tb.cosim.kernels import run_work
from sim_tb.workloads.tiles import ESE, ese_job
from soc.generate.presets import preset
from tests.microkernels.nn.lstm_case import lstm_case

#: Engines of a vault (thesis, section 5.2), which share a batch and the memory's 8 bytes a cycle.
SHARERS = 4
HOSTILE = MemoryBehaviour(
    latency=3, extra_latency=60, bandwidth=128, stall=0.4, gap=0.4, out_of_order=True, seed=5
)


@pytest.fixture(scope="module")
def simulation() -> Iterator[PeSimulation]:
    with PeSimulation(preset("pe-logistic")) as running:
        yield running


def random_job(shape: LstmShape, seed: int, vaults: int) -> KernelJob:
    rng = np.random.default_rng(seed)

    def values(*size: int) -> np.ndarray:
        return rng.integers(-4000, 4000, size, np.int16, endpoint=True)

    weights, x, state = lstm_case(shape, values)
    return lstm_job(
        shape,
        weights,
        x,
        state,
        fraction=11,
        engines=ONE_ENGINE,
        vaults=vaults,
        vault=vaults - 1,
    )


@pytest.mark.parametrize(
    ("shape", "vaults"),
    [
        (LstmShape(inputs=1, cells=1, outputs=1), 1),
        (LstmShape(inputs=13, cells=11, outputs=7, batch=5), 1),
        (LstmShape(inputs=21, cells=40, outputs=24, batch=8), 2),
        (LstmShape(inputs=3, cells=10, outputs=5, batch=33), 1),
    ],
    ids=str,
)
def test_every_bit_whatever_the_memory(
    simulation: PeSimulation, shape: LstmShape, vaults: int
) -> None:
    job = random_job(shape, shape.batch, vaults)
    for memory in (MemoryBehaviour(), HOSTILE):
        assert run_work(job, simulation, memory=memory).match


def test_an_engine_s_share_of_a_step_of_ese_takes_less_than_172_us(
    simulation: PeSimulation,
) -> None:
    """The limit of the datapath is 162 us, 202,500 cycles."""
    job = ese_job(1, batch=ESE.batch // SHARERS)
    outcome = run_work(job, simulation, memory=MemoryBehaviour(latency=100))
    assert outcome.match
    assert outcome.cycles * 0.8e-3 < 172
