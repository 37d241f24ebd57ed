"""Graphs and the golden model of their messages: belief propagation in any order of edges.

A graph has variables, each with its own number of labels, and edges with a cost for each pair of
labels. Each variable has a *belief*, its costs plus all messages that arrived. A message from ``u``
to ``v`` replaces the old one, ``o``, of that direction::

    t = belief[u] - message[v to u]
    m = r - r[0],  r[j] = min over i of (cost[i, j] + t[i])
    belief[v] = (belief[v] - o) + m

For sum-product the minimum is soft (:mod:`microkernels.graphs.soft`).

Nothing saturates: :class:`Graph` refuses costs with which an intermediate value could exceed 16
bits, so the order of sums does not matter.

A file of a graph is a NumPy archive (``.npz``) of whole numbers. ``labels [variable]``: numbers of
labels; ``costs``: those of all variables, one after the other; ``edges [edge, 2]``: their
variables; ``pairs``: costs of all edges, one after the other, each a row for each label of its
first variable.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import HIGHEST, Elements
from support.files import read_bytes

from .soft import soft_minima

#: Most labels of a variable.
MOST_LABELS = 256


class Edge(NamedTuple):
    """Variables ``first`` and ``second``, and the ``costs [i, j]`` of their labels i and j."""

    first: int
    second: int
    costs: NDArray[np.integer]


class Step(NamedTuple):
    """The message over an edge, by number, from its first variable, or ``back`` to it."""

    edge: int
    back: bool


@dataclass(frozen=True, eq=False)
class Graph:
    """Variables and edges.

    Attributes:
        costs: of the labels of each variable. edges: pairs of different variables; a pair may have
            several.

    Raises:
        KernelError: an edge to no variable, or to its own; costs of a wrong shape; values with
            which a message or belief could exceed 16 bits.
    """

    costs: tuple[NDArray[np.integer], ...]
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        self.check_sums(0)

    def check_sums(self, room: int) -> None:
        """Check the graph, and that its values leave ``room`` below the largest element.

        Raises:
            KernelError: as for the class.
        """
        for number, costs in enumerate(self.costs):
            if costs.ndim != 1 or not 1 <= len(costs) <= MOST_LABELS:
                raise KernelError(
                    f"variable {number}: costs of 1 to {MOST_LABELS} labels, not {costs.shape}"
                )
        largest_costs = [int(abs(costs.astype(np.int64)).max()) for costs in self.costs]
        largest = 0
        for number, edge in enumerate(self.edges):
            ends = edge[:2]
            for end in ends:
                if not 0 <= end < len(self.costs):
                    raise KernelError(
                        f"edge {number}: variable {end}; there are {len(self.costs)}, from 0"
                    )
            if ends[0] == ends[1]:
                raise KernelError(f"edge {number}: both ends are variable {ends[0]}")
            shape = tuple(len(self.costs[end]) for end in ends)
            if edge.costs.shape != shape:
                raise KernelError(
                    f"edge {number}: its costs must have the shape {shape}, not {edge.costs.shape}"
                )
            costs = edge.costs.astype(np.int64)
            # A message is a minimum minus another, so within the largest difference.
            largest_costs[ends[0]] += int(abs(costs - costs[:1]).max())
            largest_costs[ends[1]] += int(abs(costs - costs[:, :1]).max())
            largest = max(largest, int(abs(costs).max()))
        # A total lacks one message, which is within the bound of the belief.
        if (bound := max(largest_costs, default=0) + largest + room) > HIGHEST:
            raise KernelError(f"values may reach {bound}, more than 16 bits hold; divide the costs")

    def ends(self, step: Step) -> tuple[int, int]:
        """The variables from and to which a message goes."""
        first, second, _ = self.edges[step.edge]
        return (second, first) if step.back else (first, second)

    def matrix(self, step: Step) -> NDArray[np.integer]:
        """``[j, i]``: cost of label j of the variable to which the message goes."""
        costs = self.edges[step.edge].costs
        return costs if step.back else costs.T

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """All messages once: over all edges in order, then back in the opposite order."""
        count = len(self.edges)
        forwards = [Step(edge, False) for edge in range(count)]
        return (*forwards, *(Step(edge, True) for edge in reversed(range(count))))


def propagate(
    graph: Graph, order: Iterable[Step | None], *, soft: bool = False
) -> tuple[list[Elements], dict[Step, Elements]]:
    """Beliefs by variable, and messages by step, after the messages of ``order``; at first they are
    the costs, and 0.

    Parameters:
        soft: by the soft minimum.
    """
    beliefs: list[Elements] = [costs.astype(np.int16) for costs in graph.costs]
    messages: dict[Step, Elements] = {
        step: np.zeros(len(graph.costs[graph.ends(step)[1]]), np.int16) for step in graph.steps
    }
    for step in filter(None, order):
        source, target = graph.ends(step)
        total = beliefs[source] - messages[Step(step.edge, not step.back)]
        if soft:
            raw = soft_minima(graph.matrix(step).T, total)
        else:
            raw = (graph.matrix(step) + total).min(axis=1)
        message = raw - raw[0]
        beliefs[target] = beliefs[target] - messages[step] + message
        messages[step] = message
    return beliefs, messages


#: Steps among which the next one is looked for.
_LOOK_AHEAD = 512


def ordered(graph: Graph, steps: Sequence[Step], window: int) -> Iterator[Step | None]:
    """``steps`` in an order in which none of ``window`` in a row changes a belief that another of
    them reads or changes; None where there is no such step. A pass over the edges may begin before
    the pass ahead is complete, but overtakes none of its steps that share a belief."""
    passes = max(1, len(graph.edges))
    left = [(graph.ends(step), number // passes, step) for number, step in enumerate(steps)]
    latest: list[tuple[int, int] | None] = []
    while left:
        number = _next([one[:2] for one in left[:_LOOK_AHEAD]], latest)
        ends, _, step = (None, 0, None) if number is None else left.pop(number)
        yield step
        latest.append(ends)
        del latest[: max(0, len(latest) - window + 1)]


def _next(
    left: Sequence[tuple[tuple[int, int], int]], latest: Sequence[tuple[int, int] | None]
) -> int | None:
    """Number of the first step, of which ``left`` has ends and pass, that may follow ``latest``."""
    touched = {end for ends in latest if ends is not None for end in ends}
    changed = {ends[1] for ends in latest if ends is not None}
    turn, waiting = 0, list[tuple[int, int]]()
    for number, (ends, of_pass) in enumerate(left):
        if of_pass != turn:
            touched.update(end for other in waiting for end in other)
            changed.update(target for _, target in waiting)
            turn, waiting = of_pass, []
        source, target = ends
        if source not in changed and target not in touched:
            return number
        waiting.append(ends)
    return None


def energy(graph: Graph, labels: Sequence[int]) -> int:
    """Costs of a label for each variable, and of those of all edges."""
    alone = sum(int(costs[label]) for costs, label in zip(graph.costs, labels, strict=True))
    return alone + sum(int(edge.costs[labels[edge[0]], labels[edge[1]]]) for edge in graph.edges)


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
        names = ", ".join(_ARRAYS)
        raise KernelError(f"{path}: not a NumPy archive (.npz) with the arrays {names}") from error
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
    for name, array, size in (
        ("costs", costs, int(labels.sum())),
        ("pairs", pairs, int((sizes[:, 0] * sizes[:, 1]).sum())),
    ):
        if len(array) != size:
            raise KernelError(f"{name} must be {size} numbers, not {len(array)}")
    of_variables = np.split(costs, np.cumsum(labels)[:-1])
    of_edges = np.split(pairs, np.cumsum(sizes[:, 0] * sizes[:, 1])[:-1])
    return Graph(
        tuple(of_variables),
        tuple(
            Edge(first, second, part.reshape(labels[first], labels[second]))
            for (first, second), part in zip(edges.tolist(), of_edges, strict=False)
        ),
    )
