"""Windows whose pixels are gathered one by one, along any number of axes."""

import numpy as np

from microkernels.onnx_models.graph import Node
from microkernels.onnx_models.importer import Importer, Value

from .arrange import Index, index_of
from .window import Positions

__all__ = ["gathered"]

#: Elements of windows that are gathered one by one, at most.
_MOST_GATHERED = 1 << 16


def gathered(importer: Importer, node: Node, value: Value, found: Positions) -> Index:
    """Numbers of the elements in each window, 0 around: an image's channels, outputs along each
    axis, and pixels of a window.

    Raises:
        ModelError: there are too many.
    """
    index = index_of(importer, value)
    around = list(zip(found.before, found.after, strict=True))
    padded = np.pad(index[0], [(0, 0), *around])
    axes = tuple(range(1, padded.ndim))
    views = np.lib.stride_tricks.sliding_window_view(padded, found.extents, axes)
    rank = len(axes)
    places = [slice(None)]
    places += [slice(None, None, step) for step in found.strides]
    places += [slice(None, None, step) for step in found.dilations]
    chosen = views[tuple(places)]
    gathering: Index = chosen.reshape(*chosen.shape[: rank + 1], -1)
    if gathering.size > _MOST_GATHERED:
        raise node.refused(
            f"its windows have {gathering.size:,} pixels in all; {_MOST_GATHERED:,} are allowed "
            "with dilation, or with three dimensions"
        )
    return gathering
