"""Networks with maps of bytes on compiled simulators, against the golden model."""

from dataclasses import replace

import numpy as np
import pytest

from microkernels.common.errors import KernelError
from microkernels.networks.jobs import NetworkJob, network_job
from microkernels.networks.network import (
    Conv,
    Dense,
    Depthwise,
    ElementWise,
    LayerInput,
    MapSize,
    Network,
    Pool,
)
from microkernels.networks.parameters import Fractions, RealParameters, Weights
from microkernels.nn.window_shape import rounding_bias
from microkernels.runtime.job import STANDARD
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import chip_preset
from tests.microkernels.networks.test_networks import check, engines, job_of, launches_of_moves

PAIRS = STANDARD | {"m.v.dot.add[16]"}
#: Odd numbers of channels, several slices, bytes to bytes and bytes to sums.
BYTES = Network(
    input=MapSize(9, 8, 5),
    input_bits=8,
    layers=(
        Conv(name="first", filters=37, padding=1, fraction=5, bits=8, narrow=4),
        Conv(name="wide", filters=240, kernel=1, fraction=4, bits=8, narrow=5, relu=False),
        Conv(name="deep", filters=14, kernel=3, padding=1, fraction=6, bits=8, narrow=6),
        Depthwise(name="each", kernel=3, padding=1, fraction=6, bits=8),
        Pool(name="pool", window=3, stride=1, padding=1, bits=8),
        Conv(name="back", filters=14, kernel=1, fraction=5, bits=8, narrow=5, relu=False),
        ElementWise(name="sum", function="add", other="deep", relu=True, bits=8),
        Dense(name="fc1", outputs=21, fraction=9, bits=8, narrow=3, relu=False),
        ElementWise(name="clip", function="clip", low=-100, high=90, bits=8),
        Dense(name="fc2", outputs=7, fraction=5, bits=8, relu=False),
    ),
)
#: In batches the first layer's program has no register left.
SUMS = Network(
    input=MapSize(24, 24, 32),
    input_bits=8,
    layers=(
        Conv(name="apart", filters=6, dilation=5, fraction=6, bits=8, narrow=4),
        Conv(name="sums", filters=11, stride=2, padding=1, fraction=4, bits=8),
        Dense(name="fc", outputs=7, fraction=10, relu=False),
    ),
)
#: Bytes to sums, and sums to bytes.
MIXED = Network(
    input=MapSize(9, 8, 6),
    input_bits=8,
    layers=(
        Conv(name="wide", filters=21, padding=1, fraction=5, bits=8),
        Depthwise(name="each", padding=1, fraction=12),
        Conv(name="narrow", filters=14, kernel=1, fraction=9, narrow=6),
        Dense(name="sums", outputs=21, fraction=6, bits=8, relu=False),
        Dense(name="short", outputs=11, fraction=10, narrow=4),
        Dense(name="fc", outputs=7, fraction=5, bits=8, relu=False),
    ),
)


def bytes_job(network: Network, machine: ChipEngines, batch: int = 1) -> NetworkJob:
    random = np.random.default_rng(1)
    size = network.input
    images = random.integers(-128, 128, (batch, size.height, size.width, size.channels))
    weights = {}
    for layer in network.layers:
        if layer.has_weights:
            shape = network.weights[layer.name]
            limit = 128 if layer.bits == 8 else 1000
            values = random.integers(-limit, limit, shape)
            bias = random.integers(-100, 100, shape[:1])
            weights[layer.name] = Weights(weights=values, bias=bias)
    return network_job(network, weights, images, engines=machine)


@pytest.mark.parametrize(("network", "batch"), [(SUMS, 4), (MIXED, 1)])
def test_bytes_to_sums(network: Network, batch: int) -> None:
    job = bytes_job(network, engines(2, 1), batch)
    check(job, PAIRS)
    maps = job.of_layers(job.expected)
    assert all(len(np.unique(values)) > 3 for values in maps.values())


@pytest.mark.parametrize(("columns", "rows", "batch"), [(1, 1, 1), (2, 2, 1), (3, 1, 2)])
def test_maps_of_bytes(columns: int, rows: int, batch: int) -> None:
    job = bytes_job(BYTES, engines(columns, rows), batch)
    check(job, PAIRS)
    first = job.of_layers(job.expected)["first"]
    assert first.min() >= 0
    assert first.max() == 127


@pytest.mark.slow
@pytest.mark.parametrize("network", [BYTES, MIXED])
def test_maps_of_bytes_on_the_verilog_of_four_vaults(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})
    tiny = chip_preset("tiny")
    engine = replace(tiny.tile.pe, instructions=tiny.tile.pe.instructions | PAIRS)
    config = replace(tiny, tile=replace(tiny.tile, pe=engine))
    job = bytes_job(network, machine=ChipEngines.of(config))
    assert run_on(job, config, on="rtl").match


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ((Conv(name="a", filters=2, fraction=1),), "a reads numbers of 16 bits, but input has 8"),
        (
            (
                Conv(name="a", filters=2, fraction=1, bits=8),
                Conv(name="b", filters=2, fraction=1, bits=8),
            ),
            "b reads numbers of 8 bits, but a has 16",
        ),
    ],
)
def test_layers_that_read_other_numbers_than_written(
    layers: tuple[Conv, ...], message: str
) -> None:
    with pytest.raises(KernelError, match=message):
        Network(input=MapSize(6, 6, 2), input_bits=8, layers=layers)


def test_large_biases_leave_room_for_rounding() -> None:
    layer = Conv(name="a", filters=2, kernel=1, fraction=0, bits=8, narrow=0, relu=False)
    real = Weights(weights=np.full((2, 1, 1, 3), 0.9), bias=np.array([200.0, -200.0]))
    parameters = RealParameters(real={"a": real}, bounds={}, affine={}, curves={}, epsilons={})
    for source in range(9):
        fractions = Fractions(sources=(source,), output=4, weights=7, ends=(0.0, 0.0))
        scaled, weights = layer.scaled(fractions, parameters)
        assert isinstance(scaled, Conv)
        assert weights is not None
        assert scaled.fraction + (scaled.narrow or 0) == layer.shift(fractions)
        rounding_bias(weights.bias, 2, scaled.narrow)


def test_regions_within_a_vaults_own_tile_are_read_in_place() -> None:
    """A window that leaves a rest of the map reads a part of the tile where it was written."""
    network = Network(
        input=MapSize(9, 8, 3),
        layers=(
            Conv(name="conv", filters=8, padding=1, fraction=12),
            Pool(name="pool", window=3, stride=2),
            Conv(name="short", source="conv", filters=4, kernel=1, stride=2, fraction=12),
        ),
    )
    job = job_of(network, engines(1, 1))
    assert {LayerInput("pool", 0), LayerInput("short", 0)} <= job.plan.inputs_in_place
    assert not launches_of_moves(job)
    check(job)


def test_layers_without_bytes() -> None:
    with pytest.raises(KernelError, match="bits must be one of 16, 8, not 4"):
        Conv(name="a", filters=2, fraction=1, bits=4)
