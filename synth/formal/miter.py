"""One step of two related designs, side by side, and the goals that must hold after it.

Free inputs generate all related values of both designs: corresponding registers share an input.
Each goal is one output, 1 where it fails.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from .cut import NEXT, NOW, PROBE, CutDesign, ProofError, bits_of
from .relation import Codes, Condition, Relation, Split
from .sides import Side, SideView, extended, initial, matches


def cases_of(split: Split, which: Signal, inputs: Mapping[str, Signal]) -> list[dict[str, bool]]:
    """Values of bits of inputs, by name, for each case; together the cases are exhaustive.

    Parameters:
        which: input that selects the thing. inputs: of the circuit, by what they represent.
    """
    flag, number, register = (inputs[name] for name in (split.flag, split.number, split.register))

    def given(signal: Signal, bits: int, value: int) -> dict[str, bool]:
        names = bits_of(signal.name, len(signal))[:bits]
        return {name: bool(value >> bit & 1) for bit, name in enumerate(names)}

    inner = [given(number, place + 1, 1 << place) for place in range(len(number))]
    nothing = given(number, len(number), 0)
    inner += [nothing | given(register, split.bits, value) for value in range(1 << split.bits)]
    running = {flag.name: True}
    words = range(len(split.codes.words))
    return [
        {flag.name: False},
        *(running | given(which, len(which), word) | case for word in words for case in inner),
    ]


@dataclass
class Miter:
    """A circuit of goals.

    Attributes:
        module: the circuit. goals: name -> output, 1 where it fails. inputs: name -> free input.
        given, taken: of both designs, their outputs, which go into this circuit, and their inputs,
            which come from it: port of the design -> port of the circuit.
        cases: values of bits of inputs by which the relation splits goals; ``{}``: any.
        apart: outputs of goals that are cases of others.
        only_full: registers that the trimmed design lacks.
    """

    module: Module
    goals: dict[str, Signal] = field(default_factory=dict)
    inputs: dict[str, Signal] = field(default_factory=dict)
    given: tuple[dict[str, Signal], dict[str, Signal]] = field(default_factory=lambda: ({}, {}))
    taken: tuple[dict[str, Signal], dict[str, Signal]] = field(default_factory=lambda: ({}, {}))
    cases: list[dict[str, bool]] = field(default_factory=lambda: [{}])
    apart: set[str] = field(default_factory=set)
    only_full: list[str] = field(default_factory=list)


#: A value in the full and in the trimmed design; None: the design lacks it.
_Pair = tuple[Value | None, Value | None]


class _Builder:
    def __init__(self, full: CutDesign, trimmed: CutDesign, relation: Relation) -> None:
        self.relation = relation
        self.m = Module()
        self.miter = Miter(self.m)
        self.sides = (Side(full, 0, relation), Side(trimmed, 1, relation))
        #: Views of both designs before the step, after it, and after reset.
        self.now, self.next, self.start = (
            tuple(SideView(side, partial(value, side)) for side in self.sides)
            for value in (self._now, self._next, self._start)
        )
        self.ghosts: dict[str, Value] = {}
        self.ghosts_next: dict[str, Value] = {}
        self._made: dict[str, _Pair] = {}
        self._rom: dict[int, Signal] = {}
        self._parts = 0
        self._conditions: dict[tuple[Condition, SideView], Value] = {}

    def input(self, name: str, width: int) -> Signal:
        """A new free input."""
        count = sum(label_before.split("#")[0] == name for label_before in self.miter.inputs)
        label = f"{name}#{count}" if count else name
        signal = Signal(width, name=f"in_{len(self.miter.inputs)}")
        self.miter.inputs[label] = signal
        return signal

    def _now(self, side: Side, name: str) -> Value:
        if name in self.ghosts:
            return self.ghosts[name]
        if name not in side.places and name in side.out:
            return side.out[name]
        if name not in side.places:
            raise ProofError(f"the relation names {name!r}, which the design lacks")
        parent = side.places[name][0]
        if parent in side.cut.outputs and parent not in side.cut.states:
            return side.part(side.out, name)
        value = self._pair(name)[side.which]
        assert value is not None
        return value

    def _next(self, side: Side, name: str) -> Value:
        if name in self.ghosts_next:
            return self.ghosts_next[name]
        if name not in side.places:
            raise ProofError(f"the relation names {name!r}, which the design lacks")
        return side.part(side.next, name)

    def _start(self, side: Side, name: str) -> Value:
        if name in self.relation.ghosts:
            return Const(0, 1)
        parent, place = side.places[name]
        return initial(side.cut, parent)[place.low : place.low + place.width]

    def _pair(self, name: str) -> _Pair:
        """Values of member ``name`` in both designs before the step."""
        if name not in self._made:
            self._made[name] = self._make(name, name, {}, self._rom, None)
        return self._made[name]

    def _make(
        self,
        name: str,
        label: str,
        locals_full: dict[str, Value],
        roms: dict[int, Signal],
        also: Value | None,
    ) -> _Pair:
        """Values of member ``name`` in both designs, related as the rules say and, if ``also`` is
        given, only while it is 1; ``roms`` are the inputs that select words, by their codes."""
        places = [side.places.get(name) for side in self.sides]
        widths = [place[1].width if place else 0 for place in places]
        raw: list[Value | None] = [
            self.input(f"{side} {label}", width) if place else None
            for side, width, place in zip(("full", "trimmed"), widths, places, strict=True)
        ]
        codes = self.relation.code(name)
        if self.relation.is_ignored(name) or (None in places and codes is None):
            return raw[0], raw[1]
        condition = codes.when if codes else self.relation.gate(name)
        gate = self.holds(condition, self.now[0].within(locals_full)) if condition else None
        if also is not None:
            gate = also if gate is None else gate & also
        width = min(widths)
        shared = None if codes else self.input(label, width)
        values: list[Value | None] = []
        for which, (bits, free) in enumerate(zip(widths, raw, strict=True)):
            if free is None:
                values.append(None)
                continue
            if codes is not None:
                related = self._select(codes, name, label, roms, which, free)
            elif self.relation.is_truncated(name):
                related = Cat(shared, free[width:])
            else:
                assert shared is not None
                related = extended(shared, bits, self._signed(name))
            values.append(self._named(related if gate is None else Mux(gate, related, free)))
        return values[0], values[1]

    def _signed(self, name: str) -> bool:
        if self.relation.is_signed(name):
            return True
        return any(name in side.places and side.places[name][1].signed for side in self.sides)

    def _select(
        self,
        codes: Codes,
        name: str,
        label: str,
        roms: dict[int, Signal],
        which: int,
        free: Value,
    ) -> Value:
        """Member ``name`` of the word that a free input selects; ``free`` if it is arbitrary."""
        if id(codes) not in roms:
            bits = max(1, (len(codes.words) - 1).bit_length())
            roms[id(codes)] = self.input(f"which of {label}", bits)
        place = codes.names.index(name)
        chosen = self._named(free)
        value = Signal(len(free), name=f"code_{self._parts}")
        self._parts += 1
        with self.m.Switch(roms[id(codes)]):
            for number, word in enumerate(codes.words):
                # The last word also represents all numbers after it.
                cases = (number,) if number + 1 < len(codes.words) else ()
                with self.m.Case(*cases) if cases else self.m.Default():
                    code = word[place][which]
                    self.m.d.comb += value.eq(chosen if code is None else code)
        return value

    def words(self, parent: str) -> None:
        """Make the whole register, read port or input ``parent`` in both designs."""
        names = [n for side in self.sides for n, (p, _) in side.places.items() if p == parent]
        values = {name: self._pair(name) for name in dict.fromkeys(names)}
        for side in self.sides:
            if side.holds(parent):
                side.now[parent] = self._assemble(side, parent, values, {})

    def _assemble(
        self,
        side: Side,
        parent: str,
        values: Mapping[str, _Pair],
        local: dict[str, Value],
    ) -> Value:
        """A word from its members; of overlapping ones, the one that corresponds counts."""
        cut = side.cut
        if parent in cut.inputs:
            width = cut.inputs[parent]
        elif parent in cut.states or parent in cut.reads:
            width = cut.width(parent)
        else:
            width = next(p.width for p in cut.reads.values() if p.memory == parent)
        bits: list[Value | None] = [None] * width
        for name, place in side.leaves(parent).items():
            value = values[name][side.which]
            assert value is not None
            condition = self.relation.gate(name)
            for index in range(place.width):
                before = bits[place.low + index]
                if before is None or condition is None:
                    bits[place.low + index] = value[index]
                else:
                    gate = self.holds(condition, self.now[0].within(local))
                    bits[place.low + index] = Mux(gate, value[index], before)
        free: Iterator[int] = (index for index, bit in enumerate(bits) if bit is None)
        holes = list(free)
        if holes:
            fill = self.input(
                f"{'trimmed' if side.which else 'full'} padding of {parent}", len(holes)
            )
            for number, index in enumerate(holes):
                bits[index] = fill[number]
        return Cat(bit for bit in bits if bit is not None)

    def _named(self, value: Value) -> Value:
        """``value`` as its own signal, so that it is built once however often it is read."""
        signal = Signal(len(value), name=f"part_{self._parts}")
        self._parts += 1
        self.m.d.comb += signal.eq(value)
        return signal

    def holds(self, condition: Condition, view: SideView) -> Value:
        """``condition`` in ``view``, as one bit."""
        if view.local:
            return self._named(condition(view).bool())
        key = (condition, view)
        if key not in self._conditions:
            self._conditions[key] = self._named(condition(view).bool())
        return self._conditions[key]

    def goal(self, name: str, holds: Value, assume: Value) -> None:
        terms = [self.holds(part, self.now[0]) for part in self.relation.parts(name)]
        fails = assume & ~holds.bool()
        for number in range(1 << len(terms)):
            label = f"{name}, case {number}" if terms else name
            case = [term ^ (~number >> place & 1) for place, term in enumerate(terms)]
            signal = Signal(name=f"goal_{len(self.miter.goals)}")
            self.m.d.comb += signal.eq(Cat(fails, *case).all())
            if label in self.miter.goals:
                raise ProofError(f"two goals are named {label!r}")
            self.miter.goals[label] = signal
            if terms:
                self.miter.apart.add(signal.name)

    def build(self) -> Miter:
        _, trimmed = self.sides
        for ghost in self.relation.ghosts:
            self.ghosts[ghost] = self.input(ghost, 1)
        for side in self.sides:
            self._give(side)
        parents = dict.fromkeys(
            name for side in self.sides for name in (*side.cut.states, *side.cut.reads)
        )
        inputs = dict.fromkeys(name for side in self.sides for name in side.cut.inputs)
        for parent in (*parents, *inputs):
            self.words(parent)
        for side in self.sides:
            self._take(side)
        for parent in parents:
            if not trimmed.holds(parent):
                self.miter.only_full.append(parent)
        self._fetch()
        for ghost, follows in self.relation.ghosts.items():
            self.ghosts_next[ghost] = self._named(follows(self.now[0]))[:1]
        rules = (*self.relation.assumptions.values(), *self.relation.invariants.values())
        assume = self._named(Cat(holds(*self.now).bool() for holds in rules).all())
        self._goals(assume)
        if self.relation.split is not None:
            which = self._rom[id(self.relation.split.codes)]
            self.miter.cases = cases_of(self.relation.split, which, self.miter.inputs)
        return self.miter

    def _give(self, side: Side) -> None:
        """Add ports for all outputs of a design."""
        for number, (name, width) in enumerate(side.cut.given().items()):
            signal = Signal(width, name=f"from{side.which}_{number}")
            self.miter.given[side.which][name] = signal
            if name.startswith(NEXT):
                side.next[name.removeprefix(NEXT)] = signal
            else:
                side.out[name.removeprefix(PROBE)] = signal

    def _take(self, side: Side) -> None:
        """Add ports for all inputs of a design."""
        inputs = {NOW + name: side.now[name] for name in (*side.cut.states, *side.cut.reads)}
        inputs |= {name: side.now[name] for name in side.cut.inputs}
        for number, (name, value) in enumerate(inputs.items()):
            signal = Signal(len(value), name=f"to{side.which}_{number}")
            self.m.d.comb += signal.eq(value)
            self.miter.taken[side.which][name] = signal

    def _fetch(self) -> None:
        """Make words read from memories: related if the addresses are equal, since all written
        words are related."""
        full, trimmed = self.sides
        for name in dict.fromkeys((*full.cut.reads, *trimmed.cut.reads)):
            both = name in full.cut.reads and name in trimmed.cut.reads
            same: Value = Const(0, 1)
            if both:
                addresses = [side.out[f"{name}:address"] for side in self.sides]
                same = addresses[0] == addresses[1]
            owner = full if name in full.cut.reads else trimmed
            memory = owner.cut.reads[name].memory
            local: dict[str, Value] = {}
            roms: dict[int, Signal] = {}
            values: dict[str, _Pair] = {}
            members = [n for s in self.sides for n, (p, _) in s.places.items() if p == memory]
            for leaf in dict.fromkeys(members):
                pair = self._make(leaf, f"{name} fetched {leaf}", local, roms, same)
                values[leaf] = pair
                if pair[0] is not None:
                    local[leaf] = pair[0]
            for side in self.sides:
                if name in side.cut.reads:
                    word = self._assemble(side, memory, values, local)
                    enable = side.out[f"{name}:enable"]
                    side.next[name] = Mux(enable, word, side.now[name])

    def _goals(self, assume: Value) -> None:
        full, trimmed = self.sides
        for parent in (*full.cut.states, *full.cut.reads):
            if parent in trimmed.cut.states or parent in trimmed.cut.reads:
                words = (full.next[parent], trimmed.next[parent])
                self._related(parent, parent, words, assume, self.next[0])
                starts = (initial(full.cut, parent), initial(trimmed.cut, parent))
                self._related(parent, f"reset {parent}", starts, Const(1, 1), self.start[0])
        for name in full.cut.outputs:
            if name in trimmed.cut.outputs:
                words = (full.out[name], trimmed.out[name])
                self._related(name, f"output {name}", words, assume, self.now[0])
        for name, write in full.cut.writes.items():
            if self.relation.is_ignored(name):
                continue
            if name not in trimmed.cut.writes:
                if any(w.memory == write.memory for w in trimmed.cut.writes.values()):
                    self.goal(f"no write {name}", ~full.out[f"{name}:enable"], assume)
                continue
            outs = [side.out for side in self.sides]
            gate = self.relation.gate(name)
            when = assume if gate is None else assume & self.holds(gate, self.now[0])
            enables = [out[f"{name}:enable"] for out in outs]
            self.goal(f"write {name} enable", enables[0] == enables[1], when)
            addresses = [out[f"{name}:address"] for out in outs]
            active = enables[0]
            self.goal(f"write {name} address", ~active | (addresses[0] == addresses[1]), when)
            words = (outs[0][f"{name}:data"], outs[1][f"{name}:data"])
            self._related(write.memory, f"write {name}", words, when & active, self.now[0])
        for name, holds in self.relation.invariants.items():
            self.goal(f"invariant {name}", holds(*self.next), assume)
            self.goal(f"reset {name}", holds(*self.start), Const(1, 1))
        for name, holds in self.relation.guarantees.items():
            self.goal(name, holds(*self.now), assume)

    def _related(
        self,
        parent: str,
        label: str,
        words: tuple[Value, Value],
        assume: Value,
        full: SideView,
    ) -> None:
        """Add goals: the members of ``parent`` in ``words`` of both designs are related, while
        conditions on ``full`` hold."""
        locals_: list[dict[str, Value]] = []
        for side, word in zip(self.sides, words, strict=True):
            members = side.leaves(parent)
            locals_.append({n: word[f.low : f.low + f.width] for n, f in members.items()})
        done: set[int] = set()
        for name in dict.fromkeys((*locals_[0], *locals_[1])):
            codes = self.relation.code(name)
            if self.relation.is_ignored(name):
                continue
            view = full.within(locals_[0])
            if codes is not None:
                if id(codes) not in done:
                    done.add(id(codes))
                    gate = assume & self.holds(codes.when, view) if codes.when else assume
                    self.goal(label + name.removeprefix(parent), matches(codes, locals_), gate)
                continue
            if name not in locals_[0] or name not in locals_[1]:
                continue
            values = [part[name] for part in locals_]
            cutoff = min if self.relation.is_truncated(name) else max
            width = cutoff(len(value) for value in values)
            signed = self._signed(name)
            same = extended(values[0], width, signed) == extended(values[1], width, signed)
            condition = self.relation.gate(name)
            gate = assume & self.holds(condition, view) if condition else assume
            self.goal(label + name.removeprefix(parent), same, gate)


def build_miter(full: CutDesign, trimmed: CutDesign, relation: Relation) -> Miter:
    """The circuit whose goals never fail if and only if ``relation`` is inductive.

    Raises:
        ProofError: the relation names something that the designs lack.
    """
    return _Builder(full, trimmed, relation).build()
