"""Belief propagation on a grid (thesis 2.1.2): the problem, the names of its directions, and
variants of an update: with weights of the edges, with damping.

*Weights.* The weight of an edge multiplies its smoothness costs (equation 3.1a). Two elements
follow the labels of a vector: after the data costs the weights of the edges to the right and to
the left of the pixel, after the messages that move right those of the edges down and up. So they
end the three vectors that a sweep reads (:mod:`microkernels.bp.record`), the one of the edge that
the sweep goes along first, then that of the edge back, and no message is stored over them. Vectors
are as far apart as those of two more labels.

*Damping.* A new message ``n`` is mixed with the one that it replaces, ``o``, as
:func:`microkernels.bp.golden.sweep` says::

    m = n + (((o - n) * damping + 8) >> 4)

each sum and difference saturated: three instructions of the vector unit with 4 fraction bits, and
the load of ``o``.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import CHECK, KernelError

__all__ = [
    "BP_WIDTHS",
    "DAMPING_BITS",
    "MOST_WEIGHT",
    "TAIL",
    "USUAL",
    "BpProblem",
    "EdgeWeights",
    "MessageDirection",
    "Messages",
    "UpdateVariant",
    "check_messages",
    "element_type",
    "message_updates",
]

#: Element widths (bits) that the kernel and its golden model support.
BP_WIDTHS = (8, 16, 32)

#: Largest weight of an edge.
MOST_WEIGHT = 255

#: Messages of all directions: ``messages[direction, y, x, label]``; see :class:`MessageDirection`.
Messages = NDArray[np.signedinteger]


class MessageDirection(IntEnum):
    """Direction in which a message moves, in the order of BP-M's sweeps.

    ``messages[direction, y, x]`` is the message that *arrives* at pixel (x, y), moving so.
    """

    RIGHT = 0
    LEFT = 1
    DOWN = 2
    UP = 3

    @property
    def horizontal(self) -> bool:
        """Whether it moves along a row of pixels."""
        return self in (MessageDirection.RIGHT, MessageDirection.LEFT)

    @property
    def reverse(self) -> bool:
        """Whether it moves against the order of pixels in memory."""
        return self in (MessageDirection.LEFT, MessageDirection.UP)


def element_type(bits: int) -> np.dtype[np.signedinteger]:
    """NumPy type of an element of ``bits`` bits, little endian.

    Raises:
        KernelError: ``bits`` is not in :data:`BP_WIDTHS`.
    """
    if bits not in BP_WIDTHS:
        widths = ", ".join(map(str, BP_WIDTHS))
        raise KernelError(f"element width must be one of {widths} bits, not {bits!r}")
    return np.dtype(f"<i{bits // 8}")


def message_updates(width: int, height: int) -> int:
    """Message updates in one iteration over all four directions on ``width`` x ``height`` pixels:
    one for each pixel and direction, but for the pixels at the border that a direction begins at.
    """
    return 2 * (height * (width - 1) + width * (height - 1))


def _elements(name: str, values: NDArray[np.integer], bits: int) -> NDArray[np.signedinteger]:
    dtype = element_type(bits)
    array = np.asarray(values)
    if not np.issubdtype(array.dtype, np.integer):
        raise KernelError(f"{name} must be whole numbers, not {array.dtype}")
    limits = np.iinfo(dtype)
    if array.size and (array.min() < limits.min or array.max() > limits.max):
        wider = [
            width
            for width in BP_WIDTHS
            if -(1 << width - 1) <= array.min() <= array.max() < 1 << width - 1
        ]
        raise KernelError(
            f"{name} reach from {array.min()} to {array.max()}; "
            f"{bits} bits hold {limits.min} to {limits.max}"
            + (f", {wider[0]} bits would hold them" if wider else "; no width holds them")
        )
    result = np.array(array, dtype=dtype)
    result.setflags(write=False)
    return result


@dataclass(frozen=True, eq=False)
class EdgeWeights:
    """Factors of the smoothness costs of single edges (equation 3.1a).

    Attributes:
        right: ``[y, x]``, of the edge from pixel (x, y) to its right neighbour, 0 to
            :data:`MOST_WEIGHT`. down: the same to the one below.
    """

    right: NDArray[np.int64]
    down: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name in ("right", "down"):
            weights = np.asarray(getattr(self, name))
            if not np.issubdtype(weights.dtype, np.integer):
                raise KernelError(f"edge weights must be whole numbers, not {weights.dtype}")
            if weights.size and not 0 <= weights.min() <= weights.max() <= MOST_WEIGHT:
                raise KernelError(
                    f"edge weights must be from 0 to {MOST_WEIGHT}, but go from {weights.min()} to "
                    f"{weights.max()}"
                )
            copy = np.array(weights, np.int64)
            copy.setflags(write=False)
            object.__setattr__(self, name, copy)

    @property
    def most(self) -> int:
        """The largest; 0 without edges."""
        return max(int(one.max(initial=0)) for one in (self.right, self.down))


@dataclass(frozen=True, eq=False)
class BpProblem:
    """A Markov random field on a grid of pixels.

    Attributes:
        data_costs: ``[y, x, label]``, the cost of giving pixel (x, y) that label.
        smoothness: ``[a, b]``, the cost of label ``a`` at a pixel whose left or upper neighbour has
            label ``b`` (theta_{v,w} of equation 2.10; any matrix, symmetric or not).
        bits: element width, one of :data:`BP_WIDTHS`.
        weights: of the edges; None: all are 1.

    The arrays are copied, converted to :func:`element_type` and made read-only.

    Raises:
        KernelError: wrong dimensions, an empty grid, more than 256 labels, values that ``bits``
            bits can't hold, weights of another size.
    """

    data_costs: NDArray[np.signedinteger]
    smoothness: NDArray[np.signedinteger]
    bits: int = 16
    weights: EdgeWeights | None = None

    def __post_init__(self) -> None:
        CHECK.fields(self)
        costs = _elements("data costs", self.data_costs, self.bits)
        matrix = _elements("smoothness costs", self.smoothness, self.bits)
        if costs.ndim != 3 or 0 in costs.shape:
            raise KernelError(
                f"data costs must have the shape (height, width, labels), not {costs.shape}"
            )
        labels = costs.shape[2]
        if labels > 256:
            raise KernelError(f"{labels} labels: a vector holds at most 256")
        if matrix.shape != (labels, labels):
            raise KernelError(
                f"the smoothness costs of {labels} labels must have the shape "
                f"{(labels, labels)}, not {matrix.shape}"
            )
        if self.weights is not None:
            height, width = costs.shape[:2]
            for name, needed in (("right", (height, width - 1)), ("down", (height - 1, width))):
                actual = getattr(self.weights, name).shape
                if actual != needed:
                    raise KernelError(
                        f"the edge weights {name} must have the shape {needed}, not {actual}"
                    )
            _elements(
                "weighted smoothness costs", matrix.astype(np.int64) * self.weights.most, self.bits
            )
        object.__setattr__(self, "data_costs", costs)
        object.__setattr__(self, "smoothness", matrix)

    @property
    def height(self) -> int:
        """Rows of pixels."""
        return int(self.data_costs.shape[0])

    @property
    def width(self) -> int:
        """Columns of pixels."""
        return int(self.data_costs.shape[1])

    @property
    def labels(self) -> int:
        """Labels that a pixel may have."""
        return int(self.data_costs.shape[2])

    @property
    def symmetric(self) -> bool:
        """The smoothness costs are their own transpose."""
        return bool(np.array_equal(self.smoothness, self.smoothness.T))

    @property
    def updates(self) -> int:
        """Message updates in one iteration over all four directions."""
        return message_updates(self.width, self.height)

    def no_messages(self) -> Messages:
        """Messages before the first iteration: all 0."""
        return np.zeros((len(MessageDirection), *self.data_costs.shape), element_type(self.bits))


def check_messages(problem: BpProblem, messages: NDArray[np.integer]) -> Messages:
    """A fresh copy of ``messages`` in the problem's element type.

    Raises:
        KernelError: their shape is not that of the problem's messages, or a value does not fit.
    """
    expected = (len(MessageDirection), *problem.data_costs.shape)
    if np.shape(messages) != expected:
        raise KernelError(f"messages must have the shape {expected}, not {np.shape(messages)}")
    return _elements("messages", messages, problem.bits).copy()


#: Weights after the labels of a vector.
TAIL = 2
#: Fraction bits of damping: it counts sixteenths.
DAMPING_BITS = 4


@dataclass(frozen=True)
class UpdateVariant:
    """How an update differs from the usual one.

    Attributes:
        weighted: the problem has edge weights.
        damping: sixteenths of the old message in a new one; 0: none. Programs are the same for all
            others.
    """

    weighted: bool = False
    damping: int = 0

    @property
    def damped(self) -> bool:
        """There is damping."""
        return self.damping > 0

    @property
    def usual(self) -> bool:
        """Neither weights nor damping."""
        return not (self.weighted or self.damped)

    @property
    def tail(self) -> int:
        """Elements after the labels of a vector."""
        return TAIL if self.weighted else 0


#: Neither weights nor damping.
USUAL = UpdateVariant()
