"""Networks with element-wise layers and with layers that several others read."""

from random import Random
from typing import Any

import numpy as np
import pytest

from isa.table import BY_KEY
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import real_of
from microkernels.data.networks import usual_network_weights
from microkernels.networks.curves import Function
from microkernels.networks.jobs import network_job
from microkernels.networks.network import (
    INPUT,
    Conv,
    Dense,
    ElementWise,
    Layer,
    LayerInput,
    MapSize,
    Network,
    Pool,
)
from microkernels.networks.parameters import Fractions, RealParameters
from microkernels.nn.element_shape import OPERATIONS, element
from microkernels.runtime.job import execute
from tests.microkernels.networks.test_networks import check, engines, job_of, launches_of_moves
from tests.microkernels.nn.test_element import GIVEN, operation_of

#: Of an engine with the logistic unit.
ALL = frozenset(BY_KEY)
RESIDUAL = Network(
    input=MapSize(17, 14, 3),
    layers=(
        Conv(name="stem", filters=18, padding=1, fraction=12),
        Conv(name="conv1", filters=18, padding=1, fraction=12),
        Conv(name="conv2", filters=18, padding=1, fraction=12, relu=False),
        ElementWise(name="sum1", function="add", other="stem", relu=True),
        Pool(name="pool"),
        Conv(name="conv3", filters=40, padding=1, fraction=12),
        Conv(name="skip", source="pool", filters=40, kernel=1, fraction=12, relu=False),
        ElementWise(name="sum2", function="add", source="conv3", other="skip"),
        Dense(name="fc", outputs=21, fraction=12, relu=False),
    ),
)
#: Functions of maps and of vectors.
GATED = Network(
    input=MapSize(9, 7, 5),
    layers=(
        Conv(name="conv", filters=24, fraction=12, relu=False),
        ElementWise(name="leaky", function="leaky", slope=3277),
        ElementWise(name="gate", source="conv", function="sigmoid", fraction=8),
        ElementWise(name="gated", function="multiply", source="leaky", other="gate", fraction=8),
        Dense(name="fc1", outputs=21, fraction=12, relu=False),
        ElementWise(name="tanh", function="tanh", fraction=8),
        Dense(name="fc2", outputs=21, fraction=12, relu=False),
        ElementWise(name="total", function="add", other="tanh"),
        ElementWise(name="clipped", function="clip", low=-100, high=300),
        ElementWise(name="relu", function="relu"),
    ),
)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("grid", [(1, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("network", [RESIDUAL, GATED], ids=["residual", "gated"])
def test_every_activation_equals_the_golden_models(
    network: Network, grid: tuple[int, int], batch: int
) -> None:
    check(job_of(network, engines(*grid), batch=batch), ALL)


def test_sums_read_maps_where_they_were_written() -> None:
    """The stem's output lies in the input of conv1, and the sum reads it there."""
    job = job_of(RESIDUAL, engines(2, 2))
    sums = {LayerInput("sum1", 0), LayerInput("sum1", 1)}
    assert sums <= job.plan.inputs_in_place
    assert job.plan.outputs_written_in_place["stem"] == LayerInput("conv1", 0)
    launches = {launch.name for launch in job.launches}
    assert {"sum1", "conv1 inputs"} <= launches
    assert "sum1 inputs" not in launches


@pytest.mark.parametrize(("grid", "batch"), [((2, 2), 1), ((3, 2), 3)])
def test_moves_of_a_launch_do_not_race(grid: tuple[int, int], batch: int) -> None:
    assert launches_of_moves(job_of(RESIDUAL, engines(*grid), batch=batch)) > 2


#: Real constants of operations that have some.
REAL = RealParameters(
    real={},
    bounds={"clip": (-0.8, 1.1), "gate": (0.0, 1.0)},
    affine={"affine": (-1.3, 0.4), "gate": (0.3, 0.5)},
    curves={"curve": Function("exp")},
    epsilons={},
)


@pytest.mark.parametrize("function", OPERATIONS)
def test_layers_compute_their_formulas_in_real_numbers(function: str) -> None:
    other = "" if operation_of(function).maps == 1 else INPUT
    layer = ElementWise(name=function, function=function, other=other, **GIVEN[function])
    maps = np.random.default_rng(1).integers(-7800, 7800, (len(layer.sources), 5, 6, 7), np.int16)
    fractions = Fractions(12, (12,) * len(maps), weights=13, ends=(-2.0, 2.0))
    scaled, _ = layer.scaled(fractions, REAL)
    assert isinstance(scaled, ElementWise)
    elements = element(scaled.shape(MapSize(6, 5, 7)), *maps)
    wanted = layer.real([real_of(each, 12) for each in maps], MapSize(6, 5, 7), REAL)
    assert np.abs(real_of(elements, 12) - wanted).max() < 6e-4


FUNCTIONS: tuple[dict[str, Any], ...] = (
    {"function": "relu"},
    {"function": "clip", "low": -50, "high": 300},
    {"function": "leaky", "slope": 3000},
    {"function": "tanh", "fraction": 8},
    {"function": "sigmoid", "fraction": 8},
)


def random_layer(random: Random, network: Network, name: str) -> Layer:
    """A layer after those of ``network``, which takes any of the last three outputs."""
    sizes = network.sizes
    source = random.choice(list(sizes)[-3:])
    same = [other for other, found in sizes.items() if found == sizes[source]]
    channels = sizes[source].channels
    match random.choice(["conv", "conv", "pool", "dense", "add", "add", "multiply", "function"]):
        case "conv":
            return Conv(
                name=name,
                source=source,
                filters=random.choice([channels, random.randint(1, 40)]),
                kernel=3,
                padding=random.randint(0, 2),
                stride=random.choice([1, 1, 2]),
                fraction=8,
                relu=random.random() < 0.5,
            )
        case "pool":
            window = random.randint(1, 3)
            return Pool(name=name, source=source, window=window, stride=random.randint(1, 2))
        case "dense":
            return Dense(name=name, source=source, outputs=random.randint(1, 40), fraction=8)
        case "add":
            return ElementWise(name=name, function="add", source=source, other=random.choice(same))
        case "multiply":
            return ElementWise(
                name=name, function="multiply", source=source, other=random.choice(same), fraction=8
            )
        case _:
            return ElementWise(name=name, source=source, **random.choice(FUNCTIONS))


@pytest.mark.parametrize("seed", range(16))
def test_random_networks(seed: int) -> None:
    """Every activation, and those that no layer uses with memory used again."""
    random = Random(seed)
    size = MapSize(random.randint(3, 14), random.randint(3, 12), random.randint(1, 40))
    network = Network(
        input=size, layers=(Conv(name="first", filters=random.randint(1, 30), fraction=8),)
    )
    for number in range(random.randint(3, 8)):
        layer = random_layer(random, network, f"layer{number}")
        if isinstance(layer, Dense) and layer.source == INPUT:
            continue
        try:
            network = Network(input=size, layers=(*network.layers, layer))
        except KernelError:
            # Its window does not fit the map.
            continue
    grid = random.choice([(1, 1), (2, 1), (2, 2), (3, 2)])
    batch = random.randint(1, 3)
    images = np.random.default_rng(seed).integers(-500, 500, (batch, size[1], size[0], size[2]))
    weights = usual_network_weights(network, seed)
    for keep in (True, False):
        job = network_job(network, weights, images, engines=engines(*grid), keep=keep)
        assert execute(job, instructions=ALL).match


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ElementWise(name="a", function="swish"),
            f"function must be one of {', '.join(OPERATIONS)}, not 'swish'",
        ),
        (lambda: ElementWise(name="a", function="tanh"), "tanh needs fraction"),
        (lambda: ElementWise(name="a", function="clip", low=3, high=2), "low must be at most high"),
        (lambda: ElementWise(name="a", function="leaky", slope=40000), "slope must be a whole"),
        (lambda: ElementWise(name="a", function="relu", fraction=8), "relu has no fraction"),
        (lambda: ElementWise(name="a", function="relu", other="b"), "relu takes one map"),
        (lambda: ElementWise(name="a", function="add"), "add takes two maps"),
        (
            lambda: ElementWise(name="a", function="multiply", other="b", fraction=16),
            "fraction bits must be",
        ),
        (
            lambda: Network(
                input=MapSize(4, 4, 2), layers=(ElementWise(name="a", function="add", other="b"),)
            ),
            "a: no earlier layer has the name 'b'",
        ),
        (
            lambda: Network(
                input=MapSize(4, 4, 2), layers=(Conv(name="c", filters=4, fraction=8, inner=3),)
            ),
            "c: groups of 3 channels must divide 2 channels",
        ),
        (
            lambda: Network(
                input=MapSize(4, 4, 2),
                layers=(Pool(name="p"), ElementWise(name="a", function="add", other=INPUT)),
            ),
            "a: the maps must have the same size, but p has 2 x 2 x 2 (width, height, channels), "
            "input 4 x 4 x 2",
        ),
    ],
)
def test_networks_that_can_not_be(make: Any, message: str) -> None:
    with pytest.raises(KernelError) as error:
        make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_engine_without_the_logistic_unit_is_refused_by_name() -> None:
    with pytest.raises(
        KernelError, match=r"^network, gate: the program needs v\.sigmoid\[16\] \(word \d+\), which"
    ):
        execute(job_of(GATED, engines(2, 1)))
