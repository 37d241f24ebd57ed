"""Slices of the input of a convolution for which it is fastest."""

from dataclasses import replace
from functools import lru_cache

from isa.table import MAX_MR, MAX_VL
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import CHECK, KernelError

from .conv_plan import SHARERS, plan_conv
from .conv_shape import ConvShape

__all__ = ["best_depth"]

#: Elements that the vector unit multiplies in a cycle.
_LANES = 4


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
    CHECK.at_least("out_depth", out_depth, 1)
    most = min(MAX_VL // shape.down, shape.channels)
    best: tuple[float, int] | None = None
    for least, depth in sorted(
        (_least_cycles(shape, depth, out_depth), depth) for depth in range(1, most + 1)
    ):
        if best is not None and least > best[0]:
            break
        try:
            plan = plan_conv(
                shape, depth=depth, out_depth=out_depth, scratchpad_bytes=scratchpad_bytes
            )
        except KernelError:
            continue
        # Of the fastest, the thinnest slices.
        best = min(best or (plan.cycles, depth), (plan.cycles, depth))
    if best is None:
        most = _largest_kernel(shape, scratchpad_bytes)
        raise KernelError(
            f"a filter of {shape.kernel} x {shape.down} pixels does not fit a scratchpad of "
            f"{scratchpad_bytes} bytes, even one channel at a time: "
            + (f"at most {most} x {most} pixels do" if most else "none does")
        )
    return best[1]


def _least_cycles(shape: ConvShape, depth: int, out_depth: int) -> float:
    """A lower bound of :attr:`microkernels.nn.conv_plan.ConvPlan.cycles` with these slices: the
    beats of all products, and two additions of each group of filters."""
    column = shape.down * depth
    joined = column * shape.kernel <= MAX_VL
    parts, length = (1, column * shape.kernel) if joined else (shape.kernel, column)
    groups = -(-shape.filters // min(MAX_MR, out_depth))
    beats = parts * shape.filters * -(-length // _LANES) + 2 * groups
    slices = -(-shape.channels // depth)
    # Estimates are rounded numbers.
    return shape.out_width * shape.out_height * slices * beats / SHARERS * (1 - 1e-9)


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
