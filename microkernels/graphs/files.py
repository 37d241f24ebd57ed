"""Graphs in files: a NumPy archive (``.npz``) of whole numbers.

``labels [variable]``: numbers of labels; ``costs``: those of all variables, one after the other;
``edges [edge, 2]``: their variables; ``pairs``: costs of all edges, one after the other, each a row
for each label of its first variable.
"""

from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import KernelError
from support.files import read_bytes

from .problem import MOST_LABELS, Edge, Graph

_ARRAYS = {"labels": 1, "costs": 1, "edges": 2, "pairs": 1}
_MOST_BYTES = 1 << 30


def read_graph(path: Path) -> Graph:
    """The graph of a file.

    Raises:
        KernelError: not such a file, or not a graph; one line.
    """
    try:
        with np.load(BytesIO(read_bytes(path, _MOST_BYTES)), allow_pickle=False) as content:
            arrays = {name: content[name] for name in _ARRAYS}
    except OSError as error:
        raise KernelError(f"{path}: can't be read: {error.strerror or error}") from error
    except Exception as error:
        # NumPy raises many kinds of exceptions for damaged files.
        wanted = ", ".join(_ARRAYS)
        raise KernelError(f"{path}: not a NumPy archive (.npz) with the arrays {wanted}") from error
    for name, array in arrays.items():
        if array.dtype.kind not in "iu" or array.ndim != _ARRAYS[name]:
            raise KernelError(f"{path}: {name} must be whole numbers in {_ARRAYS[name]} dimensions")
    try:
        return _graph(*(array.astype(np.int64) for array in arrays.values()))
    except KernelError as error:
        raise KernelError(f"{path}: {error}") from error


def _graph(
    labels: NDArray[np.int64],
    costs: NDArray[np.int64],
    edges: NDArray[np.int64],
    pairs: NDArray[np.int64],
) -> Graph:
    if edges.shape[1] != 2:
        raise KernelError(f"edges must have the shape (edges, 2), not {edges.shape}")
    if ((labels < 1) | (labels > MOST_LABELS)).any():
        raise KernelError(f"variables have 1 to {MOST_LABELS} labels")
    outside = edges[(edges < 0) | (edges >= len(labels))]
    if outside.size:
        raise KernelError(
            f"an edge of variable {outside[0]}; there are {len(labels)} variables, from 0"
        )
    sizes = labels[edges]
    for name, array, wanted in (
        ("costs", costs, int(labels.sum())),
        ("pairs", pairs, int((sizes[:, 0] * sizes[:, 1]).sum())),
    ):
        if len(array) != wanted:
            raise KernelError(f"{name} must be {wanted} numbers, not {len(array)}")
    own = np.split(costs, np.cumsum(labels)[:-1])
    of_edges = np.split(pairs, np.cumsum(sizes[:, 0] * sizes[:, 1])[:-1])
    return Graph(
        tuple(own),
        tuple(
            Edge(first, second, part.reshape(labels[first], labels[second]))
            for (first, second), part in zip(edges.tolist(), of_edges, strict=False)
        ),
    )
