"""Element-wise layers on the Verilog of an engine with the logistic unit, and of a vault."""

from collections.abc import Iterator

import numpy as np
import pytest

from microkernels.nn.element_shape import ElementOperation
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.engine import MemoryBehaviour, PeSimulation
from sim_tb.cosim.kernels import run_on, run_work
from soc.generate.presets import preset, tile_preset
from tests.microkernels.nn.element_jobs import element_job

HOSTILE = MemoryBehaviour(
    latency=3, extra_latency=60, bandwidth=128, stall=0.4, gap=0.4, out_of_order=True, seed=5
)
#: An operation, and the width, height and channels of its maps.
ADD = (ElementOperation(function="add", relu=True), (3, 33, 20))


@pytest.fixture(scope="module")
def simulation() -> Iterator[PeSimulation]:
    with PeSimulation(preset("pe-logistic")) as running:
        yield running


def job(
    operation: ElementOperation,
    size: tuple[int, int, int],
    *,
    sharers: int = 1,
    room: int = 4096,
) -> KernelJob:
    rng = np.random.default_rng(1)
    width, height, channels = size
    maps = rng.integers(
        -32768, 32767, (operation.maps, height, width, channels), np.int16, endpoint=True
    )
    return element_job(operation, *maps, sharers=sharers, scratchpad_bytes=room)


@pytest.mark.parametrize(
    ("operation", "size"),
    [
        ADD,
        (ElementOperation(function="multiply", fraction=9), (2, 5, 3)),
        (ElementOperation(function="clip", low=-9, high=400), (5, 7, 33)),
        (ElementOperation(function="leaky", slope=3277), (3, 1, 1)),
        (ElementOperation(function="tanh", fraction=11), (1, 300, 5)),
    ],
    ids=["add", "multiply", "clip", "leaky", "tanh"],
)
def test_layers_are_exact_on_any_memory(
    operation: ElementOperation, size: tuple[int, int, int], simulation: PeSimulation
) -> None:
    for memory in (MemoryBehaviour(latency=20), MemoryBehaviour(latency=300), HOSTILE):
        assert run_work(job(operation, size), simulation, memory=memory).match


def test_a_sum_is_exact_on_a_vault() -> None:
    assert run_on(job(*ADD, sharers=2, room=2048), tile_preset("vault-small")).match
