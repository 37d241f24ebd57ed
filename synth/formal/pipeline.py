"""Designs seen one beat at a time, without the registers that only delay.

A register that loads a new value in every cycle, whatever its current one, delays its sources by a
cycle. If all values that meet have the same delay, such registers only affect when a beat's result
appears; without them it appears at once. The other registers remember: *roots*, which determine the
beat, and *accumulators*, which have the results of earlier beats.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from .aig import AndGraph, Part, compose
from .cut import NEXT, NOW, CutDesign, ProofError, bits_of

#: Prefix of the output for a register at which a design is split.
MADE = "made:"
_FROM = "from:"


@dataclass(frozen=True)
class Pipeline:
    """A design without the registers that only delay.

    Attributes:
        cut: the design; its states are the registers that remember.
        graph: its function for one beat; logic after an accumulator sees the value that the beat
            leaves there.
        delays: output -> cycles from the roots' values to it; 0 if it depends only on those.
    """

    cut: CutDesign
    graph: AndGraph
    delays: Mapping[str, int]


def pipeline_of(
    cut: CutDesign,
    graph: AndGraph,
    roots: str,
    arrival: Mapping[str, int],
    handed_on: Iterable[str] = (),
) -> Pipeline:
    """``cut``, with the graph ``graph``, seen one beat at a time.

    Parameters:
        roots: pattern of the names of registers that determine the beat.
        arrival: inputs that belong to a beat: port -> cycles after the roots' values.
        handed_on: delaying registers at which the design is split: the value at its input becomes
            an output, :data:`MADE` and its name, and the logic after it starts at an input.

    Raises:
        ProofError: values of different beats meet, other than in a register that remembers.
    """
    finder = _Finder(cut, graph, roots, arrival)
    delays = {port: finder.delay(port) for port in cut.outputs}
    states = {name: state for name, state in cut.states.items() if name in finder.kept}
    handed = {name: cut.states[name].width for name in handed_on if name in cut.states}
    seen = replace(
        cut,
        states=states,
        inputs={**cut.inputs, **handed},
        outputs={**cut.outputs, **{MADE + name: width for name, width in handed.items()}},
    )
    return Pipeline(seen, _joined(graph, finder, handed), delays)


def _joined(graph: AndGraph, finder: "_Finder", handed: Mapping[str, int]) -> AndGraph:
    """``graph`` with the registers that only delay replaced by their sources, or by inputs if they
    are ``handed``. There is a copy for each accumulator, for the logic that sees its earlier value,
    and one for the rest; equal parts of these merge."""
    # The first part is a hub with the shared inputs of the others and their outputs.
    copies = {name: number for number, name in enumerate(sorted(finder.accumulators), 2)}

    def copy_for(output: str, otherwise: int) -> int:
        """The copy in which ``output`` sees its sources."""
        return copies[finder.earlier[output]] if output in finder.earlier else otherwise

    inputs: dict[str, str] = {}
    for name in graph.inputs:
        state = finder.state_of.get(name.removeprefix(NOW), "")
        if state in handed:
            inputs[name] = name.removeprefix(NOW)
        elif not state or state in finder.kept:
            inputs[name] = name
    outputs: dict[str, tuple[int, str]] = {}
    for name in graph.outputs:
        bit = name.removeprefix(NEXT)
        state = finder.state_of.get(bit, "")
        if state in handed:
            outputs[MADE + bit] = copy_for(bit, 1), name
        elif not state or state in finder.kept:
            outputs[name] = copies.get(state, copy_for(re.sub(r"\[\d+\]$", "", name), 1)), name
    ports = (*inputs, *outputs)
    names = (*inputs.values(), *(_FROM + name for name in outputs))
    hub = AndGraph(names, (), {name: 2 * number for number, name in enumerate(ports, 1)})
    parts = [Part(hub, {_FROM + name: source for name, source in outputs.items()})]
    for copied in (None, *copies):
        driven: dict[str, tuple[int, str]] = {}
        for name in graph.inputs:
            bit = name.removeprefix(NOW)
            state = finder.state_of.get(bit, "")
            if state in copies and state != copied:
                driven[name] = (copies[state], NEXT + bit)
            elif name in inputs:
                driven[name] = (0, name)
            else:
                driven[name] = (copy_for(bit, len(parts)), NEXT + bit)
        parts.append(Part(graph, driven))
    return compose(parts, outputs)


class _Finder:
    """Finds the registers that remember, and the age of each bit: the cycles from the roots' values
    to it; None for a bit that no beat changes.

    Attributes:
        state_of: bit -> register. kept: registers that remember. accumulators: those that are not
            roots. earlier: bit or output -> accumulator whose value before the beat it uses.
    """

    def __init__(
        self, cut: CutDesign, graph: AndGraph, roots: str, arrival: Mapping[str, int]
    ) -> None:
        self._cut = cut
        self._graph = graph
        self._cones = _cones(graph)
        self._ages: dict[str, int | None] = {
            bit: age
            for port, age in arrival.items()
            if port in cut.inputs
            for bit in bits_of(port, cut.inputs[port])
        }
        self.state_of = {
            bit: name for name, state in cut.states.items() for bit in bits_of(name, state.width)
        }
        root_registers = {name for name in cut.states if re.fullmatch(roots, name)}
        self._made_of = {
            bit: self._inputs(NEXT + bit)
            for bit, name in self.state_of.items()
            if name not in root_registers
        }
        self.kept = root_registers | {self.state_of[bit] for bit in _recurring(self._made_of)}
        self.accumulators = self.kept - root_registers
        self.earlier: dict[str, str] = {}
        for name in root_registers:
            self._ages |= dict.fromkeys(bits_of(name, cut.states[name].width), 0)

    def _inputs(self, output: str) -> set[str]:
        """The inputs that ``output`` depends on; registers have their own names."""
        cone = self._cones[self._graph.outputs[output] >> 1]
        names = self._graph.inputs
        inputs = set()
        while cone:
            low = cone & -cone
            inputs.add(names[low.bit_length() - 1].removeprefix(NOW))
            cone ^= low
        return inputs

    def delay(self, port: str) -> int:
        """Cycles from the roots' values to output ``port``."""
        every = [self._inputs(bit) for bit in bits_of(port, self._cut.outputs[port])]
        return self._age(set().union(*every), port) or 0

    def _age(self, made_of: set[str], output: str) -> int | None:
        """The common age of ``made_of``, on which ``output`` depends. The value of an accumulator
        before the beat has the beat's age."""
        ages: dict[int, str] = {}
        accumulated: dict[int, str] = {}
        for bit in sorted(made_of):
            name = self.state_of.get(bit)
            if bit not in self._ages and name is not None:
                self._visit(bit)
            age = self._ages.get(bit)
            if age is not None:
                (accumulated if name in self.accumulators else ages)[age] = bit
        common = next(iter(ages or accumulated), None)
        earlier = [bit for age, bit in accumulated.items() if ages and age - 1 == common]
        if earlier:
            self.earlier[output] = self.state_of[earlier[0]]
        if len(ages) > 1 or any(
            age != common and bit not in earlier for age, bit in accumulated.items()
        ):
            told = [
                f"{bit} ({age} cycles)"
                for age, bit in sorted((*ages.items(), *accumulated.items()))
            ]
            raise ProofError(
                f"{self._cut.name}: different beats meet in {output}: {' and '.join(told)}"
            )
        return common

    def _visit(self, bit: str) -> None:
        name = self.state_of[bit]
        if name not in self.kept:
            age = self._age(self._made_of[bit], bit)
            self._ages[bit] = None if age is None else age + 1
            return
        bits = bits_of(name, self._cut.states[name].width)
        made_of = set().union(*(self._made_of[register_bit] for register_bit in bits)) - set(bits)
        age = self._age(made_of, name)
        if name in self.earlier:
            raise ProofError(f"{self._cut.name}: {name} and {self.earlier[name]} remember together")
        self._ages |= dict.fromkeys(bits, None if age is None else age + 1)


def _cones(graph: AndGraph) -> list[int]:
    """The inputs that each node depends on, one bit per input."""
    cones = [0, *(1 << number for number in range(len(graph.inputs)))]
    for one, two in graph.gates:
        cones.append(cones[one >> 1] | cones[two >> 1])
    return cones


def _recurring(made_of: Mapping[str, set[str]]) -> set[str]:
    """Bits that depend on themselves, directly or not."""
    number = {bit: place for place, bit in enumerate(made_of)}
    reach = [sum(1 << number[source] for source in made_of[bit] & number.keys()) for bit in made_of]
    for through in range(len(reach)):
        for place, reached in enumerate(reach):
            if reached >> through & 1:
                reach[place] = reached | reach[through]
    return {bit for bit, place in number.items() if reach[place] >> place & 1}
