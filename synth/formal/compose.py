"""The graph of a miter, made of the graphs of its parts.

The two designs become graphs each on its own, so that the full one, which all proofs share, is
converted once.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .aig import AndGraph, Gates
from .cut import ProofError

__all__ = ["Part", "compose"]


class Part(NamedTuple):
    """A graph among others: ``inputs`` maps the name of each of its inputs that another part drives
    to that part's place and output."""

    graph: AndGraph
    inputs: Mapping[str, tuple[int, str]]


#: Inputs that are 0: no step starts with a reset, and clocks are no values.
_ZERO = ("clk", "rst")


def compose(parts: list[Part], goals: Iterable[str]) -> AndGraph:
    """The outputs ``goals`` of the first of ``parts`` over the inputs of all that nothing drives,
    with equal gates merged. Clocks and resets are 0.

    Raises:
        ProofError: parts that drive each other in a circle.
    """
    free = [
        (number, node)
        for number, part in enumerate(parts)
        for node, name in enumerate(part.graph.inputs, 1)
        if name not in part.inputs and name not in _ZERO
    ]
    literals: dict[tuple[int, int], int] = {
        place: 2 * number for number, place in enumerate(free, 1)
    }
    for number, part in enumerate(parts):
        literals[number, 0] = 0
        for node, name in enumerate(part.graph.inputs, 1):
            if name in _ZERO:
                literals[number, node] = 0
    gates = Gates(len(free))

    def sources(place: tuple[int, int]) -> list[tuple[int, int, int]]:
        """The sources of node ``place``: part, node, whether inverted."""
        number, node = place
        graph, inputs = parts[number]
        gate = node - len(graph.inputs) - 1
        if gate >= 0:
            return [(number, literal >> 1, literal & 1) for literal in graph.gates[gate]]
        other, output = inputs[graph.inputs[node - 1]]
        literal = parts[other].graph.outputs[output]
        return [(other, literal >> 1, literal & 1)]

    active: set[tuple[int, int]] = set()

    def value(root: tuple[int, int]) -> int:
        stack = [root]
        while stack:
            place = stack[-1]
            if place in literals:
                stack.pop()
                continue
            made_of = sources(place)
            missing = [(p, n) for p, n, _ in made_of if (p, n) not in literals]
            if missing:
                if place in active:
                    raise ProofError("the relation depends on what it is to show")
                active.add(place)
                stack += missing
                continue
            active.discard(place)
            terms = [literals[p, n] ^ inverted for p, n, inverted in made_of]
            literals[place] = gates.conjunction(*terms) if len(terms) == 2 else terms[0]
            stack.pop()
        return literals[root]

    outputs: dict[str, int] = {}
    for goal in goals:
        literal = parts[0].graph.outputs[goal]
        outputs[goal] = value((0, literal >> 1)) ^ (literal & 1)
    names = tuple(parts[number].graph.inputs[node - 1] for number, node in free)
    return AndGraph(names, tuple(gates.pairs), outputs)
