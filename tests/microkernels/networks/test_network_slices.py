"""Slices that every layer can read, whatever the layers before and after it."""

import pytest

from microkernels.common.errors import KernelError
from microkernels.networks.layer import ChipWork, LayerPlan
from microkernels.networks.network import (
    INPUT,
    Conv,
    Dense,
    Depthwise,
    ElementWise,
    Layer,
    MapSize,
    Network,
    Pool,
)
from microkernels.networks.plan import plan_network, slice_depths
from microkernels.networks.vgg16 import vgg16
from microkernels.nn.conv_plan import ConvPlan
from microkernels.runtime.ring import ChipEngines
from tests.microkernels.networks.test_networks import LITTLE, check, engines, job_of


def network(*layers: Layer, side: int = 6) -> Network:
    stem = Conv(name="stem", filters=9, padding=1, fraction=12)
    return Network(input=MapSize(side, side, 3), layers=(stem, *layers))


def fc(outputs: int = 600, name: str = "fc") -> Dense:
    return Dense(name=name, outputs=outputs, fraction=12)


def head(kernel: int = 1, padding: int = 0) -> Conv:
    return Conv(name="head", filters=8, kernel=kernel, padding=padding, fraction=12)


AFTER_DENSE = {
    "convolution": network(fc(), head()),
    "an odd number": network(fc(601), head()),
    "many slices": network(fc(1100), head(), fc(7, "fc2")),
    "padded convolution": network(fc(300), head(3, 1)),
    "pooling between": network(
        fc(300),
        ElementWise(name="relu", function="relu"),
        Pool(name="pool", window=3, padding=1),
        head(3, 1),
    ),
    "a sum": network(
        fc(600, "one"),
        Dense(name="two", source="stem", outputs=600, fraction=12),
        ElementWise(name="sum", function="add", other="one"),
        head(),
    ),
}


@pytest.mark.parametrize("grid", [(1, 1), (2, 1), (3, 1)])
@pytest.mark.parametrize("given", AFTER_DENSE.values(), ids=AFTER_DENSE)
def test_layers_after_a_fully_connected_one(given: Network, grid: tuple[int, int]) -> None:
    check(job_of(given, engines(*grid), batch=2))


def test_a_fully_connected_layer_without_such_readers_is_one_slice_in_each_vault() -> None:
    layers = plan_network(network(fc(), fc(5, "fc2")), engines=engines(2, 1)).layers
    assert layers["fc"].out_depth == 300
    assert layers["fc"].cut.parts == 2


def test_slices_are_those_that_both_writer_and_reader_are_fast_with() -> None:
    layers = (
        Conv(name="all", filters=128, kernel=1, fraction=12),
        Depthwise(name="each", padding=1, stride=2, fraction=12),
        Conv(name="next", filters=256, kernel=1, fraction=12),
    )
    chain = Network(input=MapSize(6, 6, 128), layers=layers)
    plan = plan_network(chain, engines=engines(1, 1))
    # In three slices of 43 channels, the first could hold only one filter at a time.
    depth = plan.layers["all"].out_depth
    assert 128 % depth == 0
    part = plan.layers["all"].part
    assert isinstance(part, ConvPlan)
    assert part.filters >= 4
    assert plan.layers["all"].cycles < 90_000


@pytest.mark.parametrize("mean", [True, False])
def test_pooling_of_large_windows_has_thinner_slices(mean: bool) -> None:
    given = network(
        Conv(name="wide", filters=64, padding=1, fraction=12),
        Pool(name="pool", window=14, stride=14, mean=mean),
        fc(5),
        side=14,
    )
    job = job_of(given, engines(2, 1), batch=2)
    assert job.plan.layers["pool"].depth == 8
    check(job)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            network(Pool(name="pool", window=257), side=257),
            "pool: a window of 257 x 257 pixels of 1 channel does not fit an engine with "
            "vectors of 256 elements and a scratchpad of 4096 bytes",
        ),
        (
            network(fc(), head(15, 7)),
            "head: a window of 15 x 15 pixels of 16 channels, the minimum for a fully connected "
            "layer's output, does not fit an engine with vectors of 256 elements and a scratchpad "
            "of 4096 bytes",
        ),
        (
            network(head(33), side=40),
            "head: a filter of 33 x 33 pixels does not fit a scratchpad of 4096 bytes, even one "
            "channel at a time: at most 28 x 28 pixels do",
        ),
    ],
)
def test_windows_that_no_slice_fits_are_refused_by_the_layers_name(
    given: Network, message: str
) -> None:
    with pytest.raises(KernelError) as error:
        plan_network(given, engines=engines(1, 1))
    assert str(error.value) == message


def test_a_batch_that_does_not_fit_is_refused_by_the_layers_name() -> None:
    with pytest.raises(KernelError, match=r"^fc: a batch of 65 vectors does not fit a scratchpad"):
        job_of(network(fc(5)), engines(1, 1), batch=65)


@pytest.mark.parametrize(
    ("layer", "scratchpad", "message"),
    [
        (ElementWise(name="relu", function="relu"), 128, "relu: relu needs a scratchpad of "),
        (Pool(name="pool"), 64, r"pool: a window of 2 x 2 pixels of 1 channel does not fit"),
    ],
)
def test_scratchpads_that_are_too_small_are_refused_by_the_layers_name(
    layer: Layer, scratchpad: int, message: str
) -> None:
    given = Network(input=MapSize(6, 6, 3), layers=(layer,))
    with pytest.raises(KernelError, match=f"^{message}"):
        job_of(given, ChipEngines(scratchpad_bytes=scratchpad))


@pytest.mark.parametrize("failing", [True, False])
def test_plans_with_and_without_strips_fail_alone(
    failing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = Conv.planned

    def failing_plan(layer: Conv, plan: LayerPlan, work: ChipWork) -> LayerPlan:
        if plan.strips == failing:
            raise KernelError("too large")
        return planned(layer, plan, work)

    monkeypatch.setattr(Conv, "planned", failing_plan)
    first = Network(input=MapSize(8, 8, 3), layers=LITTLE.layers[:1])
    assert plan_network(first, engines=engines(2, 1)).layers["conv1"].strips != failing


def test_lower_bounds_don_t_change_the_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Network(
        input=MapSize(12, 10, 3),
        layers=(
            Conv(name="stem", filters=40, kernel=5, fraction=12),
            Conv(name="narrow", filters=24, kernel=1, fraction=12),
            Conv(name="wide", filters=100, padding=1, fraction=12),
            Conv(name="last", filters=30, kernel=1, fraction=12),
        ),
    )
    bounded = slice_depths(given, engines(2, 1))
    bounds = [
        conv.least_slice_cycles(given.stored[source], depth, out_depth, engines(2, 1))
        <= conv.slice_cycles(given.stored[source], depth, out_depth, engines(2, 1), first=False)
        for conv, source in zip(given.layers, (INPUT, "stem", "narrow", "wide"), strict=True)
        for depth in (1, 3, 8, 24)
        for out_depth in (1, 8, 30)
    ]
    assert all(bounds)
    monkeypatch.setattr(Conv, "least_slice_cycles", lambda *_: 0.0)
    assert slice_depths(given, engines(2, 1)) == bounded


@pytest.mark.parametrize("dilation", [1, 2])
def test_partial_sums_come_before_loads_of_single_pixels(dilation: int) -> None:
    layer = Conv(name="conv", filters=16, fraction=4, dilation=dilation, padding=dilation)
    given = Network(input=MapSize(12, 12, 32), layers=(layer,))
    launch, *_ = job_of(given, engines(1, 1)).launches
    lines = [line.text for line in launch.program.source.values() if "ld.sram" in line.text]
    after_weights = lines[["earlier sums" in line for line in lines].index(True) - 1 :]
    assert ("; input" in after_weights[0]) == (dilation == 1)


def test_line_buffers_hold_a_row_of_windows() -> None:
    """Tiles of VGG-16 in bytes are so narrow, at the price of hardly any cycles."""
    network = vgg16().in_bytes()
    chips = [ChipEngines(columns=8, rows=4, address_bits=28, lines=lines) for lines in (0, 32)]
    plain, buffered = (plan_network(network, engines=chip) for chip in chips)
    widths = {
        name: plan.tile.width
        for name, plan in buffered.layers.items()
        if isinstance(plan.part, ConvPlan)
    }
    assert len(widths) == 13
    assert set(widths.values()) == {7}
    assert max(plan.tile.width for plan in plain.layers.values()) > 7
    cycles = [sum(plan.cycles for plan in each.layers.values()) for each in (plain, buffered)]
    assert cycles[1] < 1.01 * cycles[0]
