"""Slices of the input of a convolution for which it is fastest."""

from dataclasses import replace
from functools import lru_cache

from isa.table import MAX_VL
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import CHECK, KernelError

from .conv_plan import plan_conv
from .conv_shape import ConvShape

__all__ = ["best_depth"]


@CHECK.arguments
@lru_cache(maxsize=64)
def best_depth(
    shape: ConvShape, *, out_depth: int, scratchpad_bytes: int = DEFAULT_SCRATCHPAD
) -> int:
    """Channels in a slice of the input for which the layer is fastest, by estimate.

    Parameters: as for :func:`plan_conv`.

    Raises:
        KernelError: no slice fits.
    """
    most = min(MAX_VL // shape.down, shape.channels)
    plans = []
    for depth in range(1, most + 1):
        try:
            plans.append(
                plan_conv(
                    shape, depth=depth, out_depth=out_depth, scratchpad_bytes=scratchpad_bytes
                )
            )
        except KernelError:
            continue
    if not plans:
        most = _largest_kernel(shape, scratchpad_bytes)
        raise KernelError(
            f"a filter of {shape.kernel} x {shape.down} pixels does not fit a scratchpad of "
            f"{scratchpad_bytes} bytes, even one channel at a time: "
            + (f"at most {most} x {most} pixels do" if most else "none does")
        )
    return min(plans, key=lambda plan: plan.cycles).depth


def _largest_kernel(shape: ConvShape, scratchpad_bytes: int) -> int:
    """Pixels of a side of the largest filter below the shape's that fits; 0: none does."""
    for kernel in range(
        min(max(shape.kernel, shape.down) - 1, shape.width, shape.height, MAX_VL), 0, -1
    ):
        try:
            smaller = replace(shape, kernel=kernel, kernel_down=None, channels=1, padding=0)
            plan_conv(smaller, depth=1, out_depth=1, scratchpad_bytes=scratchpad_bytes)
        except KernelError:
            continue
        return kernel
    return 0
