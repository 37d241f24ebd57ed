"""Windows of convolutions and pooling, from ONNX's attributes."""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from microkernels.networks.network import MapSize
from microkernels.networks.sizes import Pads, Size2
from microkernels.onnx_models.graph import Node
from microkernels.onnx_models.importer import Value, attribute

__all__ = ["Window", "numbers", "positions", "spatial", "window"]

#: Bounds of strides, dilations and pads, and of the windows of a node, before anything is made.
_MOST_NUMBER = 1 << 16
_MOST_WINDOWS = 1 << 24


@dataclass(frozen=True, kw_only=True)
class Window:
    """Windows on a map.

    Attributes:
        kernel: pixels of a window, with the gaps that dilation leaves. dilation: from one pixel of
            the window that counts to the next.
        stride, pads: as of a layer.
    """

    kernel: Size2
    dilation: Size2
    stride: Size2
    pads: Pads

    def output(self, size: MapSize, channels: int) -> MapSize:
        """Size of the map of all windows' results."""
        across = size.width + self.pads.left + self.pads.right - self.kernel.width
        down = size.height + self.pads.top + self.pads.bottom - self.kernel.height
        return MapSize(across // self.stride.width + 1, down // self.stride.height + 1, channels)


def spatial(node: Node, value: Value) -> int:
    """Dimensions of the maps in ``value``, 1 or 2.

    Raises:
        ModelError: another number of them.
    """
    rank = len(value.shape) - 2
    if rank not in (1, 2):
        raise node.refused(
            f"its input of shape {list(value.shape)} must have 1 or 2 dimensions after batch and "
            "channels"
        )
    return rank


@dataclass(frozen=True, kw_only=True)
class Positions:
    """Windows along each axis of an input: the lists have an item an axis.

    Attributes:
        kernel: pixels. strides, dilations: of them.
        extents: pixels of a window, with the gaps that dilation leaves.
        before, after: pixels around.
        added: of those after, pixels for the last window of ``ceil_mode``.
    """

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    extents: list[int]
    before: list[int]
    after: list[int]
    added: list[int]

    def outputs(self, size: int, axis: int) -> int:
        """Windows along an axis of so many pixels."""
        free = size + self.before[axis] + self.after[axis] - self.extents[axis]
        return free // self.strides[axis] + 1

    def counts(self, size: int, axis: int, *, around: bool) -> NDArray[np.int64]:
        """Pixels of each window along an axis that are of the map, or, with ``around``, also of
        those around it that ``ceil_mode`` has not added."""
        starts = np.arange(self.outputs(size, axis))[:, np.newaxis] * self.strides[axis]
        taps = starts + np.arange(self.kernel[axis]) * self.dilations[axis]
        first, last = self.before[axis], self.before[axis] + size
        if around:
            first, last = 0, last + self.after[axis] - self.added[axis]
        found: NDArray[np.int64] = ((taps >= first) & (taps < last)).sum(1)
        return found


def numbers(node: Node, name: str, count: int, *, least: int) -> list[int]:
    """The attribute ``name``, ``count`` numbers from ``least`` on, which are ``least`` by default.

    Raises:
        ModelError: another count, or a number out of range.
    """
    found = [int(each) for each in attribute(node, name, None) or [least] * count]
    if len(found) != count or min(found) < least or max(found) > _MOST_NUMBER:
        raise node.refused(
            f"{name} must be {count} number(s) from {least} to {_MOST_NUMBER:,}, not {found}"
        )
    return found


def positions(node: Node, value: Value, kernel: tuple[int, ...]) -> Positions:
    """The windows of a node along each axis.

    Parameters:
        value: its input. kernel: pixels of a window along each axis after batch and channels.

    Raises:
        ModelError: attributes outside their range or that contradict each other, a window that does
            not fit, or too many of them.
    """
    rank = len(kernel)
    strides = numbers(node, "strides", rank, least=1)
    dilations = numbers(node, "dilations", rank, least=1)
    before_after = numbers(node, "pads", 2 * rank, least=0)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = value.shape[2:]
    auto = attribute(node, "auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        missing = [
            max((-(-size // s) - 1) * s + e - size, 0)
            for size, s, e in zip(sizes, strides, extents, strict=True)
        ]
        less, more = [m // 2 for m in missing], [m - m // 2 for m in missing]
        before_after = less + more if auto == "SAME_UPPER" else more + less
    elif auto == "VALID":
        before_after = [0] * (2 * rank)
    elif auto != "NOTSET":
        raise node.refused(f"auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, not {auto}")
    before, after = before_after[:rank], before_after[rank:]
    added = [0] * rank
    if attribute(node, "ceil_mode", 0):
        for axis, size in enumerate(sizes):
            free = size + before[axis] + after[axis] - extents[axis]
            count = -(-free // strides[axis]) + 1
            # A window that begins after the map and the pixels before it does not count.
            if (count - 1) * strides[axis] >= size + before[axis]:
                count -= 1
            added[axis] = max((count - 1) * strides[axis] - free, 0)
            after[axis] += added[axis]
    for axis, size in enumerate(sizes):
        if extents[axis] > size + before[axis] + after[axis]:
            raise node.refused(
                f"a window of {extents[axis]} pixels does not fit {size} pixels with "
                f"{before[axis] + after[axis]} around them"
            )
    found = Positions(
        kernel=list(kernel),
        strides=strides,
        dilations=dilations,
        extents=extents,
        before=before,
        after=after,
        added=added,
    )
    windows = prod(found.outputs(size, axis) for axis, size in enumerate(sizes))
    if windows > _MOST_WINDOWS:
        raise node.refused(f"it has {windows:,} windows; {_MOST_WINDOWS:,} are allowed")
    return found


def window(node: Node, value: Value, kernel: tuple[int, ...]) -> Window:
    """The windows of a node on maps.

    Parameters:
        value: its input, a map. kernel: pixels of a window, down and across, or across alone.

    Raises:
        ModelError: as of :func:`positions`.
    """
    found = positions(node, value, kernel)
    rank = len(kernel)
    one = [1] * (2 - rank)
    none = [0] * (2 - rank)
    down, across = one + found.extents
    dilation_down, dilation_across = one + found.dilations
    stride_down, stride_across = one + found.strides
    top, left = none + found.before
    bottom, right = none + found.after
    return Window(
        kernel=Size2(across, down),
        dilation=Size2(dilation_across, dilation_down),
        stride=Size2(stride_across, stride_down),
        pads=Pads(left, top, right, bottom),
    )
