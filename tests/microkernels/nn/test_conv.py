"""The convolution kernel on the instruction set simulator against its golden model, and that model
against ONNX's reference."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx.parser
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from isa.image import DramImage
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import FeatureMap
from microkernels.common.fixed_point import Elements, real_of, to_fixed
from microkernels.nn.conv_kernel import conv_program
from microkernels.nn.conv_layout import ConvLayout
from microkernels.nn.conv_plan import ConvPlan
from microkernels.nn.conv_search import best_depth, plan_conv
from microkernels.nn.jobs import conv_job
from microkernels.nn.window_shape import ConvShape, convolve
from microkernels.runtime.job import simulate
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import preset

FRACTION = 8


def values(seed: int, *shape: int, limit: int = 1000) -> Elements:
    return np.random.default_rng(seed).integers(-limit, limit, shape, np.int16, endpoint=True)


def data(shape: ConvShape, seed: int, limit: int = 1000) -> tuple[Elements, Elements, Elements]:
    return (
        values(seed, shape.height, shape.width, shape.channels, limit=limit),
        values(seed + 1, shape.filters, shape.kernel, shape.kernel, shape.channels, limit=limit),
        values(seed + 2, shape.filters, limit=limit),
    )


@st.composite
def shapes(draw: st.DrawFn) -> ConvShape:
    kernel = draw(st.integers(1, 5))
    padding = draw(st.integers(0, kernel - 1))
    least = max(1, kernel - 2 * padding)
    return ConvShape(
        width=draw(st.integers(least, 11)),
        height=draw(st.integers(least, 8)),
        channels=draw(st.integers(1, 40)),
        filters=draw(st.integers(1, 20)),
        kernel=kernel,
        stride=draw(st.integers(1, 4)),
        padding=padding,
    )


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    shape=shapes(),
    seed=st.integers(0, 1 << 20),
    depth=st.integers(1, 40),
    out_depth=st.integers(1, 24),
    strips=st.booleans(),
    reuse=st.booleans(),
    gaps=st.booleans(),
    sharers=st.integers(1, 4),
    fraction=st.integers(0, 12),
    limit=st.sampled_from([100, 30000]),
    relu=st.booleans(),
    base=st.sampled_from([0, 32, 4096]),
)
def test_equals_the_golden_model(
    shape: ConvShape,
    seed: int,
    depth: int,
    out_depth: int,
    strips: bool,
    reuse: bool,
    gaps: bool,
    sharers: int,
    fraction: int,
    limit: int,
    relu: bool,
    base: int,
) -> None:
    # Larger windows do not fit the scratchpad twice, beside a filter.
    assume(shape.kernel**2 * depth <= 800)
    if gaps and not strips:
        # Columns take several loads, which come after the earlier sums.
        shape = replace(shape, dilation_down=2, height=shape.height + shape.kernel - 1)
    job = conv_job(
        shape,
        *data(shape, seed, limit),
        fraction=fraction,
        relu=relu,
        depth=depth,
        out_depth=out_depth,
        out_padding=seed % 3,
        strips=strips,
        reuse=reuse,
        sharers=sharers,
        base=base,
    )
    outputs, hazards = simulate(job, seed=seed)
    assert np.array_equal(outputs, job.expected)
    assert not hazards


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    kernel=st.integers(2, 5),
    stride=st.integers(1, 3),
    width=st.integers(0, 9),
    channels=st.integers(8, 20),
    scratchpad_bytes=st.sampled_from([640, 1024, 1536, 2048, 4096]),
    strips=st.booleans(),
    seed=st.integers(0, 1 << 20),
)
def test_rings_of_any_size_share_columns(
    kernel: int,
    stride: int,
    width: int,
    channels: int,
    scratchpad_bytes: int,
    strips: bool,
    seed: int,
) -> None:
    """Windows of one part that share columns go on after the ring's end, wherever it is."""
    assume(stride < kernel)
    shape = ConvShape(
        width=kernel + width,
        height=kernel + 2,
        channels=channels,
        filters=4,
        kernel=kernel,
        stride=stride,
    )
    size: dict[str, Any] = {
        "depth": 8,
        "out_depth": 4,
        "strips": strips,
        "reuse": True,
        "scratchpad_bytes": scratchpad_bytes,
    }
    try:
        plan = plan_conv(shape, **size)
    except KernelError:
        assume(False)
    assume(plan.joined and plan.sliding)
    assert plan.places.used < plan.end <= scratchpad_bytes
    job = conv_job(shape, *data(shape, seed), fraction=FRACTION, **size)
    outputs, hazards = simulate(job, seed=seed)
    assert np.array_equal(outputs, job.expected)
    assert not hazards


def test_shares_columns_where_that_loads_less() -> None:
    shape = ConvShape(width=16, height=9, channels=16, filters=8)
    plan = plan_conv(shape, depth=16, out_depth=8, reuse=True)
    whole = plan_conv(shape, depth=16, out_depth=8)
    assert (plan.sliding, plan.slots, plan.repeated) == (True, 14, 2)
    assert (whole.sliding, whole.repeated) == (False, 0)
    assert plan.cycles(4) <= whole.cycles(4)
    assert plan.bus_cycles(4) < 0.6 * whole.bus_cycles(4)
    # 18 bytes a column: filled, so that none begins within a unit of the array range check.
    filled = plan_conv(replace(shape, channels=3), depth=3, out_depth=8, reuse=True)
    assert (filled.sliding, filled.filled) == (True, 7)
    assert not plan_conv(replace(shape, stride=3), depth=16, out_depth=8, reuse=True).sliding


@pytest.mark.parametrize(("depth", "filters"), [(64, 2), (32, 4), (16, 8)])
def test_filters_of_64_channels(depth: int, filters: int) -> None:
    """Two filters at once on 3 x 64 elements a part are the thesis's (section 6.2, Figure 6.5)."""
    shape = ConvShape(width=7, height=4, channels=64, filters=8)
    job = conv_job(shape, *data(shape, 5, 60), fraction=FRACTION, depth=depth, filters=filters)
    outputs, hazards = simulate(job)
    assert np.array_equal(outputs, job.expected)
    assert not hazards


def test_the_largest_that_fits() -> None:
    """Columns of 85 channels are 255 elements; the ring of them ends with the scratchpad."""
    shape = ConvShape(width=8, height=4, channels=85, filters=3)
    plan = plan_conv(shape, depth=85, out_depth=3, filters=1)
    assert 4096 - plan.slot_bytes < plan.places.used <= 4096
    with pytest.raises(KernelError, match="slices of at most 85 channels"):
        plan_conv(shape, depth=86, out_depth=3)
    job = conv_job(shape, *data(shape, 9, 60), fraction=FRACTION, depth=85, out_depth=3)
    outputs, hazards = simulate(job)
    assert np.array_equal(outputs, job.expected)
    assert not hazards


@settings(max_examples=30, deadline=None, derandomize=True)
@given(shape=shapes(), seed=st.integers(0, 1 << 20), joined=st.booleans(), depth=st.integers(1, 40))
def test_golden_model_is_near_the_reference(
    shape: ConvShape, seed: int, joined: bool, depth: int
) -> None:
    """Half a unit of the last place for each sum that is rounded."""
    image, weights, bias = data(shape, seed, 100)
    fixed = convolve(
        shape,
        image,
        weights,
        bias,
        depth=depth,
        joined=joined,
        fraction=FRACTION,
        relu=True,
    )
    model = onnx.parser.parse_model(
        f"""
        <ir_version: 8, opset_import: ["" : 17]>
        graph (float[1, C, H, W] x, float[F, C, K, K] w, float[F] b) => (float[1, F, P, Q] y) {{
            s = Conv <strides = [{shape.stride}, {shape.stride}],
                      pads = [{", ".join([str(shape.padding)] * 4)}]> (x, w, b)
            y = Relu(s)
        }}"""
    )
    inputs = {
        "x": real_of(image, FRACTION).transpose(2, 0, 1)[np.newaxis],
        "w": real_of(weights, FRACTION).transpose(0, 3, 1, 2),
        "b": real_of(bias, FRACTION),
    }
    (real,) = ReferenceEvaluator(model).run(None, inputs)
    sums = -(-shape.channels // depth) * (1 if joined else shape.kernel)
    error = np.abs(real_of(fixed, FRACTION) - real[0].transpose(1, 2, 0))
    assert error.max() <= (0.5 * sums + 1e-6) / (1 << FRACTION)


def test_saturates_between_slices() -> None:
    """30000 + 30000 stays at the highest element; subtracting 30000 after that shows it."""
    shape = ConvShape(width=1, height=1, channels=3, filters=1, kernel=1)
    image = np.full((1, 1, 3), 30000)
    weights = np.array([1, 1, -1]).reshape(1, 1, 1, 3)
    zero = np.zeros(1, int)
    for depth, total in ((1, 32767 - 30000), (3, 30000)):
        out = convolve(
            shape, image, weights, zero, depth=depth, joined=True, fraction=0, relu=False
        )
        assert out.item() == total


@pytest.mark.parametrize(
    ("channels", "filters", "depth", "strips", "products", "additions"),
    [(64, 8, 16, False, 1152, 16), (64, 4, 32, False, 576, 8), (3, 32, 3, True, 224, 16)],
)
def test_additions_cost_little(
    channels: int, filters: int, depth: int, strips: bool, products: int, additions: int
) -> None:
    """Cycles of the vector unit for a pixel: 27 products of conv1_1 take seven beats."""

    def beats(width: int) -> int:
        shape = ConvShape(width=width + 2, height=3, channels=channels, filters=filters)
        job = conv_job(
            shape,
            *data(shape, 3, 60),
            fraction=FRACTION,
            depth=depth,
            strips=strips,
            out_depth=filters,
        )
        return run_on(job, preset("pe"), on="model").result.engine.counters["VECTOR_BUSY"]

    assert beats(13) - beats(12) == products + additions


@pytest.mark.parametrize("sharers", [1, 2, 3, 4, 7])
def test_shares_cover_the_layer_once(sharers: int) -> None:
    shape = ConvShape(width=5, height=9, channels=8, filters=24)
    plan = plan_conv(shape, depth=8, out_depth=24, filters=4)
    shares = plan.shares(sharers)
    done = [(row, group) for rows, groups in shares for row in rows for group in groups]
    assert len(shares) == sharers
    assert sorted(done) == [(row, group) for row in range(7) for group in range(6)]


def test_engines_have_about_as_many_filters() -> None:
    shape = ConvShape(width=13, height=13, channels=6, filters=50, kernel=5, stride=2)
    plan = plan_conv(shape, depth=6, out_depth=25, filters=7, sharers=4)
    filters = [sum(len(plan.group_filters[n]) for n in groups) for _, groups in plan.shares(4)]
    assert sorted(filters) == [12, 12, 13, 13]
    job = conv_job(shape, *data(shape, 4), fraction=8, depth=6, out_depth=25, filters=7, sharers=4)
    outputs, hazards = simulate(job, seed=2)
    assert np.array_equal(outputs, job.expected)
    assert not hazards


def test_plans_avoid_a_bus_as_slow_as_the_vector_unit() -> None:
    shape = ConvShape(width=13, height=13, channels=6, filters=50, kernel=5, stride=2)
    plan = plan_conv(shape, depth=6, out_depth=25, sharers=4, images=16, reuse=True)
    assert plan.bus_cycles(4) < 0.8 * plan.vector_cycles


def test_source_is_readable() -> None:
    lines = _lines()
    assert any("m.v.mul.add [16-bit]" in line and "; product of part 0" in line for line in lines)


def test_earlier_sums_come_before_or_after_the_slots() -> None:
    """A load of sums is never behind those of the next windows, or always: where each of these is
    one, or many."""

    def loads(gap_down: int) -> list[str]:
        lines = _lines(depth=4, dilation_down=gap_down)
        turn = lines[["; product of" in line for line in lines].index(True) :]
        notes = [line.partition("; ")[2].strip() for line in turn if "ld.sram" in line]
        return [note for note in notes if note in ("input", "earlier sums")]

    assert loads(1)[:2] == ["input", "earlier sums"]
    assert loads(2)[:2] == ["earlier sums", "input"]


def _lines(*, depth: int = 8, dilation_down: int = 1) -> list[str]:
    plan, source = _plan(depth, dilation_down), _map(depth=depth)
    target = _target(height=plan.shape.out_height)
    layout = ConvLayout(plan=plan, source=source, target=target, fraction=4, base=2048)
    return [line.text for line in conv_program(layout).source.values()]


def _plan(depth: int = 8, dilation_down: int = 1) -> ConvPlan:
    shape = ConvShape(width=5, height=5, channels=8, filters=4, dilation_down=dilation_down)
    return plan_conv(shape, depth=depth, out_depth=4)


def _map(**changes: int) -> FeatureMap:
    fields = {"base": 0, "width": 5, "height": 5, "channels": 8, "depth": 8, **changes}
    return FeatureMap(**fields)


def _target(**changes: int) -> FeatureMap:
    fields = {"base": 1024, "width": 3, "height": 3, "channels": 4, "depth": 4, **changes}
    return FeatureMap(**fields)


@pytest.mark.parametrize(
    ("source", "target", "base", "message"),
    [
        (_map(width=6), _target(), 2048, "source must be 5 x 5 x 8"),
        (_map(), _target(height=4), 2048, "target must be 3 x 3 x 4"),
        (_map(depth=4), _target(), 2048, "slices of 4 channels, the plan of 8"),
        (_map(), _target(depth=3), 2048, "do not divide the target's slices of 3"),
        (_map(), _target(), 2049, "base must be a multiple of 32"),
        (
            FeatureMap(base=0, width=5, height=5, channels=8, depth=8, strip_rows=3, strip_pitch=1),
            _target(),
            2048,
            "source is one of them",
        ),
    ],
)
def test_maps_that_do_not_fit(
    source: FeatureMap, target: FeatureMap, base: int, message: str
) -> None:
    with pytest.raises(KernelError, match=message):
        ConvLayout(plan=_plan(), source=source, target=target, fraction=4, base=base)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": 9}, "a kernel of 9 does not fit an image of 5 x 5"),
        ({"padding": 3}, "padding must be from 0 to 2"),
        ({"stride": 0}, "stride must be at least 1"),
        ({"filters": 0}, "filters must be at least 1"),
    ],
)
def test_shapes_that_can_not_be(changes: dict[str, int], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        ConvShape(**{"width": 5, "height": 5, "channels": 8, "filters": 4, **changes})


def test_groups_of_filters_cover_slices_that_they_do_not_divide() -> None:
    random = np.random.default_rng(4)
    for filters, out_depth, together in random.integers(1, 60, (200, 3)).tolist():
        shape = ConvShape(width=3, height=3, channels=2, filters=filters)
        together = min(together, out_depth)
        plan = replace(_plan(), shape=shape, out_depth=out_depth, filters=together)
        groups = plan.group_filters
        assert len(groups) == plan.groups
        assert all(0 < len(group) <= together for group in groups)
        computed = [number for group in groups for number in group]
        assert computed == list(range(max(computed) + 1))
        assert filters <= len(computed) < filters + together
        assert all(group.start // out_depth == group[-1] // out_depth for group in groups)
        if not plan.even:
            assert len(computed) == filters
            sizes = [len(group) for group in groups if group[-1] < filters // out_depth * out_depth]
            assert max(sizes, default=0) - min(sizes, default=0) <= 1


def test_filters_that_do_not_fit() -> None:
    shape = ConvShape(width=40, height=40, channels=8, filters=4, kernel=30)
    with pytest.raises(KernelError, match="does not fit a scratchpad of 256 bytes"):
        best_depth(shape, out_depth=4, scratchpad_bytes=256)
    with pytest.raises(KernelError, match="must divide 4, not 3"):
        plan_conv(shape, depth=4, out_depth=4, filters=3)
    with pytest.raises(KernelError, match="filters at once must be from 1 to 4, not 5"):
        plan_conv(shape, depth=8, out_depth=4, filters=5)


def test_data_that_do_not_fit() -> None:
    shape = ConvShape(width=5, height=5, channels=8, filters=4)
    image, weights, bias = data(shape, 1)
    with pytest.raises(KernelError, match=r"weights must have the shape \(4, 3, 3, 8\)"):
        conv_job(shape, image, weights[:3], bias, fraction=4)
    with pytest.raises(KernelError, match="must be whole numbers"):
        conv_job(shape, image / 2, weights, bias, fraction=4)
    with pytest.raises(KernelError, match="bias must be from -32768 to 32767"):
        conv_job(shape, image, weights, bias.astype(int) + 40000, fraction=4)
    with pytest.raises(
        KernelError, match="fraction bits must be a whole number from 0 to 15, not 16"
    ):
        conv_job(shape, image, weights, bias, fraction=16)


@pytest.mark.parametrize("strips", [False, True])
def test_maps_keep_what_is_stored(strips: bool) -> None:
    size = {"base": 64, "width": 6, "height": 5, "channels": 7, "depth": 3, "padding": 1}
    place = FeatureMap(**size, strip_rows=3, strip_pitch=2) if strips else FeatureMap(**size)
    image = values(4, 5, 6, 7)
    with DramImage(4096) as memory:
        place.store(memory, image)
        assert np.array_equal(place.load(memory), image)
        element = np.frombuffer(memory.read(place.address(2, 1, 4), 2), "<i2").item()
        assert element == image[1, 2, 4]
        assert memory.read(place.end, 64) == bytes(64)


def test_real_numbers_to_fixed_point() -> None:
    assert to_fixed(np.array([0.5, -0.5, 0.03125, 99]), 4).tolist() == [8, -8, 1, 1584]
    assert to_fixed(np.array([1e9, -1e9]), 4).tolist() == [32767, -32768]
    with pytest.raises(KernelError, match="finite"):
        to_fixed(np.array([np.nan]), 4)


def test_short_windows_are_predicted_to_wait_for_partial_sums() -> None:
    shape = ConvShape(width=20, height=12, channels=32, filters=16, kernel=5)
    plan = plan_conv(shape, depth=8, out_depth=16, filters=1, reuse=True, scratchpad_bytes=2048)
    windows = shape.out_width * shape.out_height * plan.groups * plan.slices
    # On the timing model a window takes 80 cycles in a vault, 118 in a chip.
    assert plan.predicted_cycles(1) / windows > 70 > plan.vector_cycles
