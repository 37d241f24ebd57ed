"""Check, without a proof, that a design has the names in a relation."""

import re
from collections.abc import Iterator

from amaranth.hdl import Signal, Value

from synth.formal.cut import CutDesign
from synth.formal.relation import Condition, Relation
from synth.formal.sides import Side


class _Names:
    """A view (:class:`synth.formal.relation.View`) that notes the names which the design lacks."""

    def __init__(self, cut: CutDesign, relation: Relation) -> None:
        side = Side(cut, 0, relation)
        self.widths = {name: place.width for name, (_, place) in side.places.items()}
        for name, port in {**cut.reads, **cut.writes}.items():
            self.widths |= {name: port.width, port.memory: port.width}
            self.widths |= {f"{name}:enable": 1, f"{name}:address": port.address}
        self.widths |= dict.fromkeys(relation.ghosts, 1)
        for ports in (cut.probes, cut.inputs, cut.outputs):
            self.widths |= ports
        self.widths |= {name: state.width for name, state in cut.states.items()}
        self.unknown: dict[str, None] = {}

    def __getitem__(self, name: str) -> Value:
        if name not in self.widths:
            self.unknown[name] = None
        return Signal(self.widths.get(name, 64), name="value")

    def has(self, name: str) -> bool:
        return name in self.widths


def _patterns(relation: Relation) -> Iterator[str]:
    yield from (pattern for pattern, _ in relation.gates)
    for patterns in (relation.ignored, relation.signed, relation.truncated):
        yield from patterns
    yield from (re.escape(name) for name in relation.layouts)


def _conditions(relation: Relation) -> Iterator[Condition]:
    yield from (condition for _, condition in relation.gates)
    yield from (codes.when for codes in relation.codes if codes.when is not None)
    yield from relation.ghosts.values()


def unknown_names(cut: CutDesign, relation: Relation) -> list[str]:
    """Names and patterns of names in ``relation`` that the design ``cut`` has nothing for.

    Parameters:
        relation: of two designs like ``cut``, so that nothing may be missing in one of them.
    """
    names = _Names(cut, relation)
    unmatched = [
        pattern
        for pattern in dict.fromkeys(_patterns(relation))
        if not any(re.fullmatch(pattern, name) for name in names.widths)
    ]
    for condition in _conditions(relation):
        condition(names)
    for rules in (relation.invariants, relation.guarantees, relation.assumptions):
        for holds in rules.values():
            holds(names, names)
    return unmatched + list(names.unknown)
