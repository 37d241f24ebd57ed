"""Products of two maps: golden model and kernel on the simulator."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from microkernels.common.errors import KernelError
from microkernels.common.feature_map import FeatureMap, round_up
from microkernels.nn.jobs import layer_job
from microkernels.nn.line import line_program
from microkernels.nn.product import ProductLayout, ProductShape, product
from microkernels.runtime.job import Golden, KernelJob, simulate

#: Alignment of maps in different rows of the memory.
_APART = 4096


def maps(shape: ProductShape, base: int = 0) -> tuple[FeatureMap, FeatureMap, FeatureMap]:
    one, other = shape.widths
    found: list[FeatureMap] = []
    for width, height, channels in (
        (one, shape.rows, shape.inner),
        (other, shape.columns, shape.inner),
        (shape.groups, shape.rows, shape.columns),
    ):
        held = FeatureMap(base=base, width=width, height=height, channels=channels, depth=channels)
        found.append(held)
        base = round_up(held.end, _APART)
    return found[0], found[1], found[2]


def layer(shape: ProductShape, *, sharers: int, seed: int, scratchpad: int = 4096) -> KernelJob:
    random = np.random.default_rng(seed)
    source, other, target = maps(shape)
    first, second = (
        random.integers(-3000, 3000, (held.height, held.width, held.channels)).astype(np.int16)
        for held in (source, other)
    )
    layout = ProductLayout(
        shape=shape,
        source=source,
        other=other,
        target=target,
        base=round_up(target.end, _APART),
        sharers=sharers,
        scratchpad_bytes=scratchpad,
    )

    def prepare(memory) -> None:
        source.store(memory, first)
        other.store(memory, second)
        layout.store(memory)

    return layer_job(
        "product",
        layout,
        line_program(layout),
        prepare=prepare,
        outputs=target.load,
        golden=Golden(lambda: product(shape, first, second)),
    )


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 14), st.integers(1, 14), st.integers(1, 40)),
    shared=st.sampled_from([(False, False), (True, False), (False, True)]),
    sharers=st.integers(1, 4),
    scratchpad=st.sampled_from([1024, 4096]),
    seed=st.integers(0, 99),
)
def test_the_kernel_equals_the_golden_model(
    sizes: tuple[int, int, int, int],
    shared: tuple[bool, bool],
    sharers: int,
    scratchpad: int,
    seed: int,
) -> None:
    groups, rows, columns, inner = sizes
    shape = ProductShape(
        groups=groups, rows=rows, columns=columns, inner=inner, fraction=10, shared=shared
    )
    job = layer(shape, sharers=sharers, seed=seed, scratchpad=scratchpad)
    outputs, hazards = simulate(job)
    np.testing.assert_array_equal(outputs, job.expected)
    assert not hazards


def test_the_golden_model_is_a_matrix_product() -> None:
    random = np.random.default_rng(5)
    first, second = random.integers(-9, 9, (4, 2, 6)), random.integers(-9, 9, (5, 2, 6))
    shape = ProductShape(groups=2, rows=4, columns=5, inner=6, fraction=0)
    found = product(shape, first, second)
    for group in range(2):
        np.testing.assert_array_equal(found[:, group], first[:, group] @ second[:, group].T)


def test_rows_of_a_whole_vector() -> None:
    shape = ProductShape(groups=1, rows=5, columns=7, inner=256, fraction=12)
    job = layer(shape, sharers=2, seed=1)
    outputs, hazards = simulate(job)
    np.testing.assert_array_equal(outputs, job.expected)
    assert not hazards


def test_bad_layouts_are_refused() -> None:
    with pytest.raises(KernelError, match="inner must be a whole number from 1 to 256"):
        ProductShape(groups=1, rows=1, columns=1, inner=257, fraction=0)
    shape = ProductShape(groups=1, rows=4, columns=4, inner=8, fraction=0)
    source, other, target = maps(shape)
    thin = FeatureMap(base=0, width=1, height=4, channels=8, depth=4)
    with pytest.raises(KernelError, match="other must have one slice of 8 channels"):
        ProductLayout(shape=shape, source=source, other=thin, target=target, base=1 << 16)
    with pytest.raises(KernelError, match="need a scratchpad of"):
        ProductLayout(
            shape=shape,
            source=source,
            other=other,
            target=target,
            base=1 << 16,
            scratchpad_bytes=32,
        )
