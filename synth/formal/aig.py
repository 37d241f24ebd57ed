"""And-inverter graphs: reading and writing AIGER, joining of parts, and simplification of goals.

A literal is twice the number of a node, plus 1 if inverted; node 0 is the constant 0. Nodes
1..inputs are the inputs, later ones AND gates.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .cut import ProofError

#: Maximum inputs of which all values are tried, and maximum nodes simulated, of 8 KiB each.
_TRIED = 16
_FOLLOWED = 20_000


@dataclass(frozen=True)
class AndGraph:
    """A combinational circuit.

    Attributes:
        inputs: names of the inputs; number ``i`` is node ``i + 1``.
        gates: the two literals of each AND gate, both of earlier nodes.
        outputs: name -> literal.
    """

    inputs: tuple[str, ...]
    gates: tuple[tuple[int, int], ...]
    outputs: Mapping[str, int]

    @property
    def first_gate(self) -> int:
        """The node of the first AND gate."""
        return len(self.inputs) + 1

    def terms(self, output: str) -> set[int]:
        """Literals whose conjunction is ``output``."""
        terms: set[int] = set()
        seen: set[int] = set()
        pending = [self.outputs[output]]
        while pending:
            literal = pending.pop()
            if literal & 1 or literal >> 1 < self.first_gate:
                terms.add(literal)
            elif literal not in seen:
                seen.add(literal)
                pending += self.gates[(literal >> 1) - self.first_gate]
        return terms

    def cone(self, literals: Iterable[int], boundary: Container[int] = ()) -> list[int]:
        """The nodes that ``literals`` depend on, ascending, without those that they depend on only
        through those of ``boundary``, which are not in it either."""
        nodes: set[int] = set()
        pending = [literal >> 1 for literal in literals]
        while pending:
            node = pending.pop()
            if node and node not in nodes and node not in boundary:
                nodes.add(node)
                if node >= self.first_gate:
                    pending += (literal >> 1 for literal in self.gates[node - self.first_gate])
        return sorted(nodes)


class Gates:
    """AND gates over ``inputs`` inputs, with equal ones merged."""

    def __init__(self, inputs: int) -> None:
        self.pairs: list[tuple[int, int]] = []
        self._known: dict[tuple[int, int], int] = {}
        self._inputs = inputs

    def conjunction(self, one: int, two: int) -> int:
        """The literal of the AND of two literals."""
        if one > two:
            one, two = two, one
        if one == 0 or one == two ^ 1:
            return 0
        if one == 1 or one == two:
            return two
        if (one, two) not in self._known:
            self.pairs.append((one, two))
            self._known[one, two] = 2 * (self._inputs + len(self.pairs))
        return self._known[one, two]


def read_aiger(content: bytes) -> AndGraph:
    """A graph from a binary AIGER file of a combinational circuit with a symbol for every port.

    Raises:
        ProofError: it is not such a file.
    """
    end = content.index(b"\n")
    header = content[:end].split()
    if header[0] != b"aig" or len(header) < 6 or int(header[3]) != 0:
        raise ProofError("not a binary AIGER file of a combinational circuit")
    inputs, outputs, ands = (int(header[place]) for place in (2, 4, 5))
    position = end + 1
    literals = []
    for _ in range(outputs):
        end = content.index(b"\n", position)
        literals.append(int(content[position:end]))
        position = end + 1

    gates: list[tuple[int, int]] = []
    for index in range(ands):
        left = 2 * (inputs + index + 1)
        deltas = []
        for _ in range(2):
            value = shift = 0
            while True:
                byte = content[position]
                position += 1
                value |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
            deltas.append(value)
        first = left - deltas[0]
        gates.append((first, first - deltas[1]))
    symbols: dict[str, str] = {}
    for line in content[position:].decode("utf-8", "replace").splitlines():
        if line == "c":
            break
        place, _, name = line.partition(" ")
        symbols[place] = name
    return AndGraph(
        tuple(symbols.get(f"i{number}", f"input {number}") for number in range(inputs)),
        tuple(gates),
        {symbols.get(f"o{number}", f"output {number}"): lit for number, lit in enumerate(literals)},
    )


def write_aiger(graph: AndGraph) -> bytes:
    """``graph`` as a binary AIGER file with a symbol for every port."""
    count = len(graph.inputs)
    top = count + len(graph.gates)
    out = bytearray(f"aig {top} {count} 0 {len(graph.outputs)} {len(graph.gates)}\n".encode())
    for literal in graph.outputs.values():
        out += f"{literal}\n".encode()
    for index, pair in enumerate(graph.gates):
        first, second = max(pair), min(pair)
        for delta in (2 * (count + index + 1) - first, first - second):
            while delta >= 0x80:
                out.append(delta & 0x7F | 0x80)
                delta >>= 7
            out.append(delta)
    for letter, names in (("i", graph.inputs), ("o", graph.outputs)):
        out += "".join(f"{letter}{place} {name}\n" for place, name in enumerate(names)).encode()
    return bytes(out)


def demanded(graph: AndGraph, output: str) -> dict[int, bool]:
    """Inputs (by node) with the value that ``output`` requires to be 1. It can't be 1 if a required
    value is missing because two contradict each other."""
    return {
        literal >> 1: not literal & 1
        for literal in sorted(graph.terms(output))
        if 0 < literal >> 1 < graph.first_gate
    }


def _copy(
    graph: AndGraph, outputs: Iterable[int], literals: dict[int, int], gates: Gates
) -> list[int]:
    """The literals of ``gates`` for the literals ``outputs``; ``literals`` are those of other
    nodes, to which the copied ones are added."""
    outputs = list(outputs)

    def translate(literal: int) -> int:
        return literals[literal >> 1] ^ (literal & 1)

    for node in graph.cone(outputs, literals):
        one, two = graph.gates[node - graph.first_gate]
        literals[node] = gates.conjunction(translate(one), translate(two))
    return [translate(output) for output in outputs]


def extract(graph: AndGraph, outputs: Iterable[str], fixed: Mapping[int, bool]) -> AndGraph:
    """The part of ``graph`` that ``outputs`` depend on, with the inputs ``fixed`` constant and
    equal gates merged. All inputs remain."""
    literals = {node: 2 * node for node in range(graph.first_gate)}
    literals |= {node: int(value) for node, value in fixed.items()}
    gates = Gates(len(graph.inputs))
    names = list(outputs)
    copies = _copy(graph, (graph.outputs[name] for name in names), literals, gates)
    return AndGraph(graph.inputs, tuple(gates.pairs), dict(zip(names, copies, strict=True)))


def sharpened(graph: AndGraph, outputs: Iterable[str]) -> AndGraph:
    """``graph`` with ``outputs``, each 1 for the same inputs as before. If an output is 1 only if
    several nodes are, it assumes each of these in the logic that depends on it.

    Often the output then compares a circuit with itself, and the comparison vanishes.
    """
    gates = Gates(len(graph.inputs))
    sharp: dict[str, int] = {}
    for output in outputs:
        literals = {node: 2 * node for node in range(graph.first_gate)}
        result = 1
        for term in sorted(graph.terms(output)):
            (value,) = _copy(graph, [term], literals, gates)
            result = gates.conjunction(result, value)
            literals[term >> 1] = ~term & 1
        sharp[output] = result
    return AndGraph(graph.inputs, tuple(gates.pairs), sharp)


def is_refuted(graph: AndGraph, output: str) -> bool:
    """Whether ``output`` is 0 for all inputs, by trying all values of the inputs of its last term;
    also False if there are too many."""
    term = max(graph.terms(output))
    if term < 2:
        return term == 0
    cone = graph.cone([term])
    read = [node for node in cone if node < graph.first_gate]
    if len(read) > _TRIED or len(cone) > _FOLLOWED:
        return False
    ones = (1 << (1 << len(read))) - 1
    values = {0: 0}
    for number, node in enumerate(read):
        # Alternating blocks of 2**number zeros and ones.
        period = ones // ((1 << (2 << number)) - 1)
        values[node] = period * (((1 << (1 << number)) - 1) << (1 << number))
    _evaluate(graph, cone[len(read) :], values, ones)
    return values[term >> 1] == (ones if term & 1 else 0)


def simulate(graph: AndGraph, inputs: Iterable[bool]) -> dict[int, int]:
    """The value of each node, 0 or 1, if the inputs have the values ``inputs``."""
    values = {0: 0} | {node: int(value) for node, value in enumerate(inputs, 1)}
    _evaluate(graph, range(graph.first_gate, graph.first_gate + len(graph.gates)), values, 1)
    return values


def _evaluate(graph: AndGraph, gates: Iterable[int], values: dict[int, int], ones: int) -> None:
    """Add the values of ``gates`` to those of nodes before: bits, one for each bit of ``ones``."""
    for node in gates:
        one, two = graph.gates[node - graph.first_gate]
        values[node] = (values[one >> 1] ^ (ones if one & 1 else 0)) & (
            values[two >> 1] ^ (ones if two & 1 else 0)
        )


class Part(NamedTuple):
    """A graph to be composed with others. The two designs of a proof are such parts, so that the
    full one, shared by all proofs, is converted once. ``inputs`` maps the name of each input that
    another part drives to that part's index and output."""

    graph: AndGraph
    inputs: Mapping[str, tuple[int, str]]


#: Inputs tied to 0: steps don't start with a reset, and clocks are not values.
_ZERO = ("clk", "rst")


def compose(parts: list[Part], goals: Iterable[str]) -> AndGraph:
    """The outputs ``goals`` of the first of ``parts`` as functions of all undriven inputs, with
    equal gates merged. Clocks and resets are 0.

    Raises:
        ProofError: parts that drive each other in a cycle.
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
