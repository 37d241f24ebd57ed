"""A graph with its work list, ready to run on an engine."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from isa.run import Launch
from microkernels.common.builder import DEFAULT_SCRATCHPAD, WORD_BYTES
from microkernels.common.errors import CHECK
from microkernels.common.feature_map import ROW_BYTES, round_up
from microkernels.common.fixed_point import Elements
from microkernels.common.memory import Readable, Writable
from microkernels.runtime.job import Golden, KernelJob

from .kernel import WINDOW, Item, graph_program
from .problem import Graph, Step, ordered, propagate
from .soft import CONSTANTS, MOST_BELOW, padded

_ALIGN = 8
_PAIR = 2
_ADDRESSES = ("total", "opposite", "matrix", "belief", "message")


class _Layout:
    """Addresses after the work list: an idle item's place, beliefs, messages, matrices, then the
    constants of the soft minimum."""

    def __init__(self, graph: Graph, items: int, *, soft: bool) -> None:
        self._end = round_up(WORD_BYTES * (1 + soft + items * Item.length()), ROW_BYTES)
        self.idle = self._take(2)
        self.beliefs = [self._take(costs.nbytes) for costs in _wide(graph)]
        sizes = {step: 2 * len(graph.costs[graph.ends(step)[1]]) for step in graph.steps}
        self.messages = {step: self._take(size) for step, size in sizes.items()}
        #: Costs as the engine reads them, and their addresses.
        self.costs = {
            step: padded(graph.matrix(step).T)
            if soft
            else np.ascontiguousarray(graph.matrix(step), "<i2")
            for step in graph.steps
        }
        self.matrices = {step: self._take(costs.nbytes) for step, costs in self.costs.items()}
        self.constants = self._take(2 * len(CONSTANTS)) if soft else 0
        self.end = round_up(self._end, ROW_BYTES)

    def _take(self, size: int) -> int:
        start = self._end
        self._end = round_up(start + size, _ALIGN)
        return start

    def item(self, graph: Graph, step: Step | None) -> Item[int]:
        """The item of a step; None: an idle one."""
        if step is None:
            one = dict.fromkeys(("source", "target", "pairs"), 1)
            return Item(**dict.fromkeys(_ADDRESSES, self.idle), **one)
        source, target = graph.ends(step)
        return Item(
            total=self.beliefs[source],
            opposite=self.messages[Step(step.edge, not step.back)],
            matrix=self.matrices[step],
            belief=self.beliefs[target],
            message=self.messages[step],
            source=len(graph.costs[source]),
            target=len(graph.costs[target]),
            pairs=self.costs[step].size,
        )


def _wide(graph: Graph) -> list[Elements]:
    return [costs.astype("<i2") for costs in graph.costs]


@CHECK.arguments
def graph_job(
    graph: Graph,
    iterations: int,
    *,
    soft: bool = False,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> KernelJob:
    """Every message of a graph ``iterations`` times, on one engine; outputs are all beliefs, then
    all messages, of :func:`microkernels.graphs.problem.propagate`.

    Parameters:
        soft: messages are those of sum-product (:mod:`microkernels.graphs.soft`).

    Raises:
        KernelError: values without room for soft minima, no edges or no iterations, or an edge that
            does not fit the scratchpad.
    """
    CHECK.at_least("iterations", iterations, 1)
    CHECK.at_least("edges", len(graph.edges), 1)
    if soft:
        graph.check_sums(MOST_BELOW)
    order = list(ordered(graph, iterations * graph.steps, WINDOW))
    order += [None] * (-len(order) % (2 * _PAIR))
    # The program loads a pair and reads another that it does not compute.
    items = [*order, *[None] * (2 * _PAIR)]
    layout = _Layout(graph, len(items), soft=soft)
    words = [len(order) // (2 * _PAIR), *[layout.constants] * soft]
    for step in items:
        words += layout.item(graph, step).words()
    labels = max(map(len, graph.costs))
    pairs = max(costs.size for costs in layout.costs.values())
    program = graph_program(labels, pairs, soft=soft, scratchpad_bytes=scratchpad_bytes)

    def prepare(memory: Writable) -> None:
        memory.write(0, np.array(words, "<i8").tobytes())
        memory.write(layout.idle, bytes(_ALIGN))
        for address, costs in zip(layout.beliefs, _wide(graph), strict=True):
            memory.write(address, costs.tobytes())
        for step, address in layout.messages.items():
            memory.write(address, bytes(2 * len(graph.costs[graph.ends(step)[1]])))
            memory.write(layout.matrices[step], layout.costs[step].tobytes())
        if soft:
            memory.write(layout.constants, np.array(CONSTANTS, "<i2").tobytes())

    def outputs(memory: Readable) -> Elements:
        sizes = [len(costs) for costs in graph.costs]
        sizes += [len(graph.costs[graph.ends(step)[1]]) for step in layout.messages]
        places = [*layout.beliefs, *layout.messages.values()]
        parts = [memory.read(at, 2 * size) for at, size in zip(places, sizes, strict=True)]
        return np.frombuffer(b"".join(parts), "<i2")

    return KernelJob(
        name="graph",
        launches=(Launch(program=program),),
        prepare=prepare,
        outputs=outputs,
        golden=Golden(partial(_golden, graph, order, soft)),
        end=layout.end,
        updates=iterations * len(graph.steps),
    )


def _golden(graph: Graph, order: Sequence[Step | None], soft: bool) -> Elements:
    beliefs, messages = propagate(graph, order, soft=soft)
    return np.concatenate([*beliefs, *messages.values()]).astype(np.int16)
