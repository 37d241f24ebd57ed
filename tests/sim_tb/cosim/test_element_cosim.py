"""Element-wise layers on the Verilog of an engine with the logistic unit, and of a vault."""

from collections.abc import Iterator

import numpy as np
import pytest

from microkernels.nn.element_shape import ElementShape
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.engine import MemoryBehaviour, PeSimulation
from sim_tb.cosim.kernels import run_on, run_work
from soc.generate.presets import preset, tile_preset
from tests.microkernels.nn.element_jobs import element_job

HOSTILE = MemoryBehaviour(
    latency=3, extra_latency=60, bandwidth=128, stall=0.4, gap=0.4, out_of_order=True, seed=5
)
ADD = ElementShape(width=3, height=33, channels=20, operation="add", relu=True)


@pytest.fixture(scope="module")
def simulation() -> Iterator[PeSimulation]:
    with PeSimulation(preset("pe-logistic")) as running:
        yield running


def job(shape: ElementShape, *, sharers: int = 1, room: int = 4096) -> KernelJob:
    rng = np.random.default_rng(1)
    size = (shape.maps, shape.height, shape.width, shape.channels)
    maps = rng.integers(-32768, 32767, size, np.int16, endpoint=True)
    return element_job(shape, *maps, sharers=sharers, scratchpad_bytes=room)


@pytest.mark.parametrize(
    "shape",
    [
        ADD,
        ElementShape(width=2, height=5, channels=3, operation="multiply", fraction=9),
        ElementShape(width=5, height=7, channels=33, operation="clip", low=-9, high=400),
        ElementShape(width=3, height=1, channels=1, operation="leaky", slope=3277),
        ElementShape(width=1, height=300, channels=5, operation="tanh", fraction=11),
    ],
    ids=lambda shape: shape.operation,
)
def test_layers_are_exact_on_any_memory(shape: ElementShape, simulation: PeSimulation) -> None:
    for memory in (MemoryBehaviour(latency=20), MemoryBehaviour(latency=300), HOSTILE):
        assert run_work(job(shape), simulation, memory=memory).match


def test_a_sum_is_exact_on_a_vault() -> None:
    assert run_on(job(ADD, sharers=2, room=2048), tile_preset("vault-small")).match
