"""Each kind of layer of a network, one tile: golden model, simulator, timing model, Verilog."""

import numpy as np
import pytest

from microkernels.networks.jobs import NetworkJob, network_job
from microkernels.networks.maps import Pads, Size2
from microkernels.networks.network import (
    INPUT,
    KINDS,
    Conv,
    Dense,
    Depthwise,
    ElementWise,
    Layer,
    MapSize,
    Network,
    Normalize,
    Pool,
    Product,
    Rearrange,
    Source,
)
from microkernels.networks.parameters import Weights
from microkernels.networks.recurrent import Recurrent
from microkernels.nn.element_shape import FUNCTIONS, OPERATIONS
from microkernels.runtime.job import execute
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import design
from tests.microkernels.nn.test_element import GIVEN
from vip.models.layers import _pace

SIZE = MapSize(7, 6, 20)


def layers() -> tuple[Layer, ...]:
    """Every kind of layer, and every function and operation."""
    order = np.random.default_rng(2).permutation(SIZE.elements)[:300] - 2
    return (
        # Three channels: strips.
        Conv(name="strips", filters=20, padding=1, fraction=13),
        Conv(name="conv", filters=20, kernel=Size2(2, 3), padding=Pads(1, 1, 0, 1), fraction=13),
        Depthwise(name="depthwise", padding=1, fraction=13),
        Depthwise(name="halved", padding=1, stride=2, fraction=13, relu=False),
        Pool(name="highest", source="depthwise", padding=1, window=3, stride=2),
        Pool(name="mean", source="depthwise", mean=True),
        Source(name="given", size=SIZE),
        *(
            ElementWise(
                name=name,
                source="depthwise",
                other="" if name in FUNCTIONS else "given",
                function=name,
                relu=name == "add",
                **needs,
            )
            for name, needs in GIVEN.items()
        ),
        Normalize(name="softmax", source="depthwise", operation="softmax", source_fraction=12),
        Product(name="product", source="depthwise", other="given", fraction=9),
        Rearrange(
            name="moved",
            inputs=("depthwise", "multiply"),
            size=MapSize(5, 3, 20),
            order=tuple(order.tolist()),
        ),
        Dense(name="dense", source="moved", outputs=24, fraction=13),
        Recurrent(name="states", source="depthwise", cell="lstm", cells=5, steps=7, fraction=12),
    )


@pytest.fixture(scope="module")
def job() -> NetworkJob:
    random = np.random.default_rng(1)
    network = Network(input=MapSize(7, 6, 3), layers=layers())
    assert network.sizes["depthwise"] == SIZE
    weights = {
        name: Weights(
            weights=random.integers(-2500, 2500, shape), bias=random.integers(-400, 400, shape[0])
        )
        for name, shape in network.weights.items()
    }
    return network_job(
        network,
        weights,
        random.integers(-4000, 4000, (1, 6, 7, 3)),
        engines=ChipEngines.of(design("vault-logistic")),
        further={"given": random.integers(-4000, 4000, (1, 6, 7, 20))},
    )


def test_the_network_has_every_kind(job: NetworkJob) -> None:
    kinds = {type(layer) for layer in job.plan.network.layers}
    assert kinds == set(KINDS)
    named = {layer.function for layer in layers() if isinstance(layer, ElementWise)}
    assert named == set(OPERATIONS)
    assert job.plan.layers["strips"].strips
    assert INPUT in job.plan.network.sources["strips"]
    assert execute(job, instructions=design("vault-logistic").pe.instructions).match


def test_launched_kinds_predict_cycles_with_a_measured_pace(job: NetworkJob) -> None:
    launched = [layer for layer in layers() if not isinstance(layer, (Source, Rearrange))]
    assert all(job.plan.layers[layer.name].cycles for layer in launched)
    assert {layer.kind for layer in launched} | {"moves"} == set(_pace())


@pytest.mark.slow
def test_every_kind_on_the_verilog(job: NetworkJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})
    config = design("vault-logistic")
    model = run_on(job, config, on="model")  # type: ignore[arg-type]
    verilog = run_on(job, config, on="rtl")  # type: ignore[arg-type]
    assert model.match
    assert verilog.match
    assert {name: run.cycles for name, run in verilog.results.items()} == {
        name: run.cycles for name, run in model.results.items()
    }
