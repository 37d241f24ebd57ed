"""Depthwise convolutions: golden model, kernel on the simulator, speed on the timing model."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from microkernels.common.errors import KernelError
from microkernels.common.feature_map import FeatureMap, round_up
from microkernels.networks.jobs import network_job
from microkernels.networks.maps import Pads, Size2
from microkernels.networks.network import Conv, Depthwise, MapSize, Network
from microkernels.networks.parameters import Weights
from microkernels.nn.depthwise import DepthwiseLayout
from microkernels.nn.depthwise_plan import DepthwiseShape, depthwise
from microkernels.nn.jobs import layer_job
from microkernels.nn.line import line_program
from microkernels.runtime.job import Golden, KernelJob, execute, simulate
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import design

#: Alignment of maps in different rows of the memory.
_APART = 4096


@pytest.fixture(autouse=True)
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timing model waits on all processors that it may use."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})


def drawn(shape: DepthwiseShape, seed: int, most: int) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(seed)
    sizes = (
        (shape.height, shape.width, shape.channels),
        (shape.channels, shape.down, shape.across),
        (shape.channels,),
    )
    return tuple(random.integers(-most, most, size).astype(np.int16) for size in sizes)


def layer(shape: DepthwiseShape, depth: int, *, sharers: int, seed: int = 0) -> KernelJob:
    image, weights, bias = drawn(shape, seed, 1 << 13 if shape.bits == 16 else 1 << 15)
    source = FeatureMap(
        base=0, width=shape.width, height=shape.height, channels=shape.channels, depth=depth
    )
    target = FeatureMap(
        base=round_up(source.end, _APART),
        width=shape.out_width,
        height=shape.out_height,
        channels=shape.channels,
        depth=depth,
    )
    layout = DepthwiseLayout(
        shape=shape,
        source=source,
        target=target,
        base=round_up(target.end, _APART),
        sharers=sharers,
    )

    def prepare(memory) -> None:
        source.store(memory, image)
        layout.store(memory, weights, bias)

    return layer_job(
        "depthwise",
        layout,
        line_program(layout),
        prepare=prepare,
        outputs=target.load,
        golden=Golden(lambda: depthwise(shape, image, weights, bias)),
    )


def exact(shape: DepthwiseShape, image, weights, bias) -> np.ndarray:
    """Sums of integers, output by output."""
    found = np.zeros((shape.out_height, shape.out_width, shape.channels), np.int64)
    for y, x, c in product(*map(range, found.shape)):
        top, left = y * shape.step_down, x * shape.stride
        part = image[top : top + shape.down, left : left + shape.across, c].astype(np.int64)
        found[y, x, c] = (part * weights[c]).sum() + bias[c]
    return np.maximum(found, 0) if shape.relu else found


@pytest.mark.parametrize("relu", [False, True])
def test_the_golden_model_adds_integers(relu: bool) -> None:
    shape = DepthwiseShape(
        width=9,
        height=8,
        channels=5,
        kernel=3,
        kernel_down=2,
        stride=2,
        stride_down=1,
        fraction=0,
        relu=relu,
    )
    given_arrays = drawn(shape, 1, 40)
    np.testing.assert_array_equal(depthwise(shape, *given_arrays), exact(shape, *given_arrays))


def test_the_golden_model_rounds_each_product() -> None:
    shape = DepthwiseShape(
        width=2, height=1, channels=1, kernel=2, kernel_down=1, fraction=2, relu=False
    )
    arrays = (np.full((1, 2, 1), 1, np.int16), np.full((1, 1, 2), 2, np.int16))
    # Two halves, each rounded up.
    assert depthwise(shape, *arrays, np.zeros(1, np.int16)).tolist() == [[[2]]]


@st.composite
def shapes(draw: st.DrawFn, bits: int = 16) -> tuple[DepthwiseShape, int, int]:
    across, down = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    shape = DepthwiseShape(
        width=across + draw(st.integers(0, 9)),
        height=down + draw(st.integers(0, 9)),
        channels=draw(st.integers(1, 40)),
        kernel=across,
        kernel_down=down,
        stride=draw(st.integers(1, 4)),
        stride_down=draw(st.integers(1, 3)),
        fraction=draw(st.integers(0, 15)),
        relu=draw(st.booleans()),
        bits=bits,
    )
    return shape, draw(st.sampled_from([1, 4, 7, 8, 16])), draw(st.integers(1, 4))


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(shapes(), st.integers(0, 9))
def test_the_kernel_equals_the_golden_model(case, seed: int) -> None:
    shape, depth, sharers = case
    job = layer(shape, depth, sharers=sharers, seed=seed)
    outputs, hazards = simulate(job, seed=seed)
    assert not hazards
    assert job.differing(outputs) == 0


@pytest.mark.parametrize(
    ("size", "stride", "least"), [(30, 1, 0.45), (57, 2, 0.36)], ids=["stride 1", "stride 2"]
)
def test_a_vault_reaches_most_of_its_products(size: int, stride: int, least: float) -> None:
    """3 x 3, 64 channels; four engines do 16 products of 16 bits in a cycle."""
    shape = DepthwiseShape(
        width=size,
        height=size,
        channels=64,
        stride=stride,
        stride_down=stride,
        fraction=12,
    )
    job = layer(shape, 16, sharers=4)
    run = run_on(job, design("vault"), on="model")
    assert run.match
    products = shape.taps * shape.out_width * shape.out_height * shape.channels
    assert products / run.cycles / 16 >= least


@pytest.mark.parametrize(("bits", "most"), [(16, 11_500), (8, 6_900)])
def test_slices_of_many_channels_are_cut(bits: int, most: int) -> None:
    """DS-CNN's layer, whose products and sums take 9,500 cycles in 16 bits; each row of all 64
    channels would be read three times."""
    channels = 64 * bits // 16
    shape = DepthwiseShape(width=7, height=27, channels=channels, fraction=6, bits=bits)
    run = run_on(layer(shape, channels, sharers=4), design("vault"), on="model")
    assert run.match
    assert run.cycles <= most


@pytest.mark.slow
def test_a_tile_on_the_verilog() -> None:
    shape = DepthwiseShape(width=11, height=9, channels=20, stride=2, stride_down=2, fraction=12)
    for each in (shape, replace(shape, stride=1, stride_down=1)):
        job = layer(each, 16, sharers=4)
        runs = [run_on(job, design("vault"), on=on) for on in ("rtl", "model")]
        assert all(run.match for run in runs)
        assert runs[0].cycles == runs[1].cycles


@pytest.mark.parametrize("vaults", [1, 4])
def test_networks_have_depthwise_layers(vaults: int) -> None:
    network = Network(
        input=MapSize(9, 8, 3),
        layers=(
            Conv(name="first", filters=20, padding=1, fraction=12),
            Depthwise(name="apart", padding=Pads(1, 1, 0, 2), fraction=12),
            Depthwise(name="less", kernel=Size2(2, 3), stride=2, fraction=11, relu=False),
            Conv(name="point", filters=7, kernel=1, fraction=12, relu=False),
        ),
    )
    random = np.random.default_rng(3)
    weights = {
        name: Weights(
            weights=random.integers(-3000, 3000, shape), bias=random.integers(-99, 99, shape[0])
        )
        for name, shape in network.weights.items()
    }
    assert network.weights["less"] == (20, 3, 2)
    chip = {"columns": 2, "rows": vaults // 2, "address_bits": 20} if vaults > 1 else {}
    job = network_job(
        network,
        weights,
        random.integers(-4000, 4000, (2, 8, 9, 3)),
        engines=ChipEngines(**chip, pes=2),
    )
    assert execute(job).match


def test_windows_that_do_not_fit_are_refused() -> None:
    shape = DepthwiseShape(width=20, height=20, channels=300, kernel=9, fraction=0)
    with pytest.raises(KernelError, match="a window of 9 x 9 pixels of 16 channels does not fit"):
        layer(shape, 16, sharers=1)
    with pytest.raises(KernelError, match="so padding must be 0"):
        DepthwiseShape(width=6, height=6, channels=1, padding=1, fraction=0)
    with pytest.raises(KernelError, match="does not fit a map of 2 x 5"):
        DepthwiseShape(width=2, height=5, channels=1, fraction=0)


@pytest.mark.parametrize(
    ("shape", "depth"),
    [
        (DepthwiseShape(width=64, height=64, channels=8, kernel=1, fraction=0), 8),
        (DepthwiseShape(width=9, height=513, channels=1, stride=2, stride_down=2, fraction=0), 1),
    ],
    ids=["one pixel", "stride"],
)
def test_tall_maps_have_programs_that_fit(shape: DepthwiseShape, depth: int) -> None:
    job = layer(shape, depth, sharers=4)
    assert len(job.launches[0].program.words) <= 1024
    outputs, hazards = simulate(job)
    assert np.array_equal(outputs, job.expected)
    assert not hazards
