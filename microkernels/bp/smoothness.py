"""Smoothness costs by name: ``linear:2``, ``potts``, ``quadratic:7``, or a matrix in a file."""

from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import CHECK, KernelError
from support.errors import clipped
from support.files import read_bytes

#: Largest weight: keeps costs of any element width far from 64 bits.
LARGEST_WEIGHT = (1 << 31) - 1
_KINDS = ("linear", "potts", "quadratic")
_MOST_TRUNCATION = 999_999_999
#: Bytes in a file of 256 x 256 costs of 64 bits, with room for its header.
_MOST_BYTES = 1 << 20


def smoothness_costs(
    labels: int, name: str, weight: int, across: int | None = None
) -> NDArray[np.int64]:
    """``[a, b]``: the cost of labels ``a`` and ``b`` at neighbouring pixels.

    Parameters:
        labels: 1 to 256.
        name: with ``d`` the absolute difference of two labels and ``T`` a whole number of at least
            1, ``linear`` is d, ``linear:T`` is min(d, T), ``potts`` is min(d, 1), ``quadratic`` is
            d * d, ``quadratic:T`` is min(d * d, T); or the name of a NumPy file (``.npy``) with
            ``labels`` x ``labels`` whole numbers.
        weight: factor of all costs, 0 to :data:`LARGEST_WEIGHT`.
        across: labels are motions, row by row, with that many in a row: d is the sum of the
            differences across and down, and d * d the sum of their squares. None: one row.

    Raises:
        KernelError: a value out of range, an unknown name, or a file that does not contain such a
            matrix.
    """
    CHECK.within("labels", labels, 1, 256)
    CHECK.within("weight", weight, 0, LARGEST_WEIGHT)
    if name.endswith(".npy"):
        return weight * _read(Path(name), labels)
    kind, truncation = _parsed(name)
    return weight * np.minimum(_distances(labels, kind, across), truncation)


def coarse_costs(
    labels: int, name: str, weight: int, levels: int = 2, across: int | None = None
) -> list[NDArray[np.int64]] | None:
    """Smoothness costs of the coarse levels (thesis 3.1b), where a pixel stands for ``e`` x ``e``:
    ``e V(d / e)`` for labels ``d`` apart, with ``V`` as defined by :func:`smoothness_costs`, also
    for fractions, rounded half up.

    Parameters:
        labels, name, weight, across: as for :func:`smoothness_costs`.
        levels: number of levels, including that of the pixels; ``e`` is 2 at the second, 4 at the
            third.

    Returns:
        None for a matrix from a file, which has no costs between its labels
        (:func:`microkernels.bp.golden.coarse_smoothness` interpolates them).

    Raises:
        KernelError: as for :func:`smoothness_costs`.
    """
    CHECK.within("labels", labels, 1, 256)
    CHECK.within("weight", weight, 0, LARGEST_WEIGHT)
    if name.endswith(".npy"):
        return None
    kind, truncation = _parsed(name)
    distances = _distances(labels, kind, across)
    levels_costs: list[NDArray[np.int64]] = []
    for scale in (1 << level for level in range(1, levels)):
        if kind == "quadratic":
            # e (d / e)^2, times the weight, in units of 1 / e.
            parts = np.minimum(distances, scale**2 * truncation) * weight
            levels_costs.append((parts + scale // 2) // scale)
        else:
            levels_costs.append(weight * np.minimum(distances, scale * truncation))
    return levels_costs


def _distances(labels: int, kind: str, across: int | None) -> NDArray[np.int64]:
    """Differences of labels, or squares of them: sums of those down and across."""
    parts = np.divmod(np.arange(labels, dtype=np.int64), across or labels)
    down, right = (np.abs(np.subtract.outer(part, part)) for part in parts)
    result: NDArray[np.int64] = down + right
    return down * down + right * right if kind == "quadratic" else result


def _parsed(name: str) -> tuple[str, int]:
    """Kind and truncation from the name of costs."""
    kind, colon, limit = name.partition(":")
    if kind not in _KINDS or (colon and kind == "potts"):
        raise KernelError(
            f"unknown smoothness {clipped(name, 40)!r}; allowed: linear, linear:T, potts, "
            "quadratic, quadratic:T or a .npy file"
        )
    if not colon:
        return kind, 1 if kind == "potts" else _MOST_TRUNCATION
    if not (limit.isascii() and limit.isdigit() and len(limit) < 10 and int(limit) >= 1):
        raise KernelError(
            f"smoothness {clipped(name, 40)!r}: the truncation must be a whole number from 1 "
            f"to {_MOST_TRUNCATION}"
        )
    return kind, int(limit)


def _read(path: Path, labels: int) -> NDArray[np.int64]:
    try:
        content = read_bytes(path, _MOST_BYTES)
    except OSError as error:
        raise KernelError(f"{path}: can't be read: {error.strerror}") from error
    try:
        matrix = np.load(BytesIO(content), allow_pickle=False)
    except Exception as error:
        # NumPy raises many kinds of exceptions for damaged files.
        raise KernelError(f"{path}: not a NumPy array (.npy)") from error
    if not isinstance(matrix, np.ndarray) or matrix.shape != (labels, labels):
        shape = matrix.shape if isinstance(matrix, np.ndarray) else "several arrays"
        raise KernelError(
            f"{path}: the smoothness costs of {labels} labels must have the shape "
            f"{(labels, labels)}, not {shape}"
        )
    if (
        not np.issubdtype(matrix.dtype, np.integer)
        or np.abs(matrix.astype(np.float64)).max() >= 2**31
    ):
        raise KernelError(f"{path}: smoothness costs must be whole numbers below 2**31")
    result: NDArray[np.int64] = matrix.astype(np.int64)
    return result
