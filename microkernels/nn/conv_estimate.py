"""Predicted cycles of a convolution on a vault, for planners.

A window takes the longest of three times: of the vector unit, of the bus, which all engines of the
vault share, and of the latency of loads, of which the input ring hides as many as it holds windows
ahead. Times that are nearly equal add up to some degree. Start-up and passes are added.

The constants were fitted to 64 runs of the timing model: layers of 1 to 64 channels, kernels of 1
to 7 pixels, strides 1 and 2, with and without strips, on one and on four engines. The mean error is
4.3 %, the largest 23 %.
"""

from .conv_layout import share_conv
from .conv_plan import ConvPlan

__all__ = ["predict_conv"]

#: Clocks until a load's data are there; of a program's start, and of a pass besides its windows.
_LATENCY, _START, _PASS = 240, 600, 200
#: How sharply the longest time decides: the times are added in this norm.
_EXPONENT = 12


def _window(plan: ConvPlan, sharers: int) -> float:
    latency = _LATENCY / max(plan.ahead, 1 / 2)
    times = (plan.vector_cycles, plan.bus_cycles(sharers), latency)
    return float(sum(time**_EXPONENT for time in times) ** (1 / _EXPONENT))


def predict_conv(plan: ConvPlan, sharers: int) -> float:
    """Predicted cycles of the engine that works longest.

    Parameters:
        plan: of the layer. sharers: engines of the vault, at least 1.

    Raises:
        KernelError: ``sharers`` is less than 1.
    """
    window = _window(plan, sharers)
    return max(
        _START
        + len(share.groups)
        * plan.slices
        * (_PASS + len(share.rows) * plan.shape.out_width * window)
        for share in share_conv(plan, sharers)
    )
