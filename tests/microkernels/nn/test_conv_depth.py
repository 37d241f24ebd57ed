"""The slices for which a convolution is fastest."""

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from microkernels.common.errors import KernelError
from microkernels.nn.conv_search import best_depth, plan_conv
from microkernels.nn.window_shape import ConvShape


@settings(max_examples=20, deadline=None)
@given(
    kernel=st.integers(1, 5),
    channels=st.integers(1, 60),
    filters=st.integers(1, 40),
    scratchpad=st.sampled_from([1024, 4096]),
)
def test_the_depth_is_the_fastest_of_all(
    kernel: int, channels: int, filters: int, scratchpad: int
) -> None:
    """The search ends early by a lower bound."""
    shape = ConvShape(width=9, height=8, channels=channels, filters=filters, kernel=kernel)
    plans = []
    for depth in range(1, min(256 // kernel, channels) + 1):
        with suppress(KernelError):
            plans.append(
                plan_conv(
                    shape, depth=depth, out_depth=min(filters, 16), scratchpad_bytes=scratchpad
                )
            )
    found = best_depth(shape, out_depth=min(filters, 16), scratchpad_bytes=scratchpad)
    assert found == min(plans, key=lambda plan: plan.cycles(1)).depth


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    kernel=st.integers(1, 5),
    depth=st.integers(1, 40),
    out_depth=st.integers(1, 40),
    sharers=st.integers(1, 4),
    scratchpad=st.sampled_from([1024, 4096]),
)
def test_the_filters_at_once_are_the_fastest_of_all(
    kernel: int, depth: int, out_depth: int, sharers: int, scratchpad: int
) -> None:
    """The search ends early by a lower bound."""
    shape = ConvShape(width=9, height=8, channels=depth, filters=2 * out_depth, kernel=kernel)
    options = {"depth": depth, "out_depth": out_depth, "reuse": True, "sharers": sharers}
    plans = []
    for filters in range(1, out_depth + 1):
        with suppress(KernelError):
            plans.append(plan_conv(shape, filters=filters, scratchpad_bytes=scratchpad, **options))
    if plans:
        found = plan_conv(shape, scratchpad_bytes=scratchpad, **options)
        assert found.cycles(sharers) == min(plan.cycles(sharers) for plan in plans)
        assert found.least_cycles(sharers) <= found.cycles(sharers)
