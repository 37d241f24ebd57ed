"""Belief propagation on a grid (thesis 2.1.2): the problem, the names of its directions, and
variants of an update (edge weights, damping).

*Weights.* An edge's weight multiplies its smoothness costs (equation 3.1a). Two elements follow a
vector's labels: after the data costs, the weights of the edges to the right and left of the pixel;
after the messages that move right, those of the edges down and up. They thus end the three vectors
that a sweep reads (:mod:`microkernels.bp.record`), first the weight of the edge that the sweep
follows, then that of the edge back, and no message is stored over them. Vectors are as far apart as
those with two more labels.

*Damping.* A new message ``n`` is mixed with the one it replaces, ``o``, as described in
:func:`microkernels.bp.golden.sweep`::

    m = n + (((o - n) * damping + 8) >> 4)

with each sum and difference saturated: three vector instructions with 4 fraction bits, and the load
of ``o``.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import CHECK, KernelError

#: Element widths (bits) that the kernel and its golden model support.
BP_WIDTHS = (8, 16, 32)

#: Largest edge weight.
MOST_WEIGHT = 255

#: Maximum cycles of a launch, and per message that the launch updates.
_START_CYCLES = 1_000_000
_UPDATE_CYCLES = 20_000

#: Messages of all directions: ``messages[direction, y, x, label]``; see :class:`MessageDirection`.
Messages = NDArray[np.signedinteger]


class MessageDirection(IntEnum):
    """Direction in which a message moves, in the order of BP-M's sweeps.

    ``messages[direction, y, x]`` is the message that *arrives* at pixel (x, y) moving in
    ``direction``.
    """

    RIGHT = 0
    LEFT = 1
    DOWN = 2
    UP = 3

    @property
    def horizontal(self) -> bool:
        """Whether the message moves along a row of pixels."""
        return self in (MessageDirection.RIGHT, MessageDirection.LEFT)

    @property
    def reverse(self) -> bool:
        """Whether the message moves against the order of pixels in memory."""
        return self in (MessageDirection.LEFT, MessageDirection.UP)

    @property
    def opposite(self) -> "MessageDirection":
        """The other direction of the axis."""
        return MessageDirection(self ^ 1)


def most_cycles(updates: int) -> int:
    """Maximum cycles of a launch that updates so many messages."""
    return _START_CYCLES + updates * _UPDATE_CYCLES


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
    """Message updates per iteration over all four directions on ``width`` x ``height`` pixels: one
    per pixel and direction, except for the border pixels where a direction begins.
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
    """Factors for the smoothness costs of single edges (equation 3.1a).

    Attributes:
        right: ``[y, x]``, weight of the edge from pixel (x, y) to its right neighbour, 0 to
            :data:`MOST_WEIGHT`. down: the same to the pixel below.
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
        """The largest weight; 0 without edges."""
        return max(int(one.max(initial=0)) for one in (self.right, self.down))


@dataclass(frozen=True, eq=False)
class BpProblem:
    """A Markov random field on a grid of pixels.

    Attributes:
        data_costs: ``[y, x, label]``, the cost of assigning that label to pixel (x, y).
        smoothness: ``[a, b]``, the cost of label ``a`` at a pixel whose left or upper neighbour has
            label ``b`` (theta_{v,w} of equation 2.10); any matrix, symmetric or not.
        bits: element width, one of :data:`BP_WIDTHS`.
        weights: of the edges; None: all are 1.

    The arrays are copied, converted to :func:`element_type` and made read-only.

    Raises:
        KernelError: wrong dimensions, an empty grid, more than 256 labels, values that don't fit in
            ``bits`` bits, or weights of another size.
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
            raise KernelError(f"{labels} labels: at most 256 fit in a vector")
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
        """Number of rows of pixels."""
        return int(self.data_costs.shape[0])

    @property
    def width(self) -> int:
        """Number of columns of pixels."""
        return int(self.data_costs.shape[1])

    @property
    def labels(self) -> int:
        """Number of labels that a pixel may have."""
        return int(self.data_costs.shape[2])

    @property
    def symmetric(self) -> bool:
        """Whether the smoothness costs are their own transpose."""
        return bool(np.array_equal(self.smoothness, self.smoothness.T))

    @property
    def updates(self) -> int:
        """Message updates per iteration over all four directions."""
        return message_updates(self.width, self.height)

    def no_messages(self) -> Messages:
        """Messages before the first iteration: all 0."""
        return np.zeros((len(MessageDirection), *self.data_costs.shape), element_type(self.bits))


def check_messages(problem: BpProblem, messages: NDArray[np.integer]) -> Messages:
    """A fresh copy of ``messages`` in the problem's element type.

    Raises:
        KernelError: the shape is not that of the problem's messages, or a value does not fit.
    """
    expected = (len(MessageDirection), *problem.data_costs.shape)
    if np.shape(messages) != expected:
        raise KernelError(f"messages must have the shape {expected}, not {np.shape(messages)}")
    return _elements("messages", messages, problem.bits).copy()


#: Weights after a vector's labels.
TAIL = 2
#: Fraction bits of damping, which is in sixteenths.
DAMPING_BITS = 4


@dataclass(frozen=True)
class UpdateVariant:
    """How an update differs from the default one.

    Attributes:
        weighted: the problem has edge weights.
        damping: sixteenths of the old message in a new one; 0: none. Programs are the same for all
            values above 0.
    """

    weighted: bool = False
    damping: int = 0

    @property
    def damped(self) -> bool:
        """Whether there is damping."""
        return self.damping > 0

    @property
    def usual(self) -> bool:
        """Whether there are neither weights nor damping."""
        return not (self.weighted or self.damped)

    @property
    def tail(self) -> int:
        """Elements after a vector's labels."""
        return TAIL if self.weighted else 0


#: Neither weights nor damping.
USUAL = UpdateVariant()
