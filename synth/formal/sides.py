"""The two designs of a proof: their ports as signals, and their values at one time."""

from collections.abc import Callable, Mapping

from amaranth.hdl import Cat, Const, Value

from .cut import BitSlice, CutDesign
from .relation import Codes, Relation, members


def extended(value: Value, width: int, signed: bool) -> Value:
    """``value`` in ``width`` bits: truncated, sign-extended or zero-extended."""
    size = len(value)
    if width <= size:
        return value[:width]
    fill = value[-1] if signed and size else Const(0, 1)
    return Cat(value, fill.replicate(width - size))


class Side:
    """One of the two designs: its ports as signals."""

    def __init__(self, cut: CutDesign, which: int, relation: Relation) -> None:
        self.cut = cut
        self.which = which
        self.now: dict[str, Value] = {}
        self.next: dict[str, Value] = {}
        self.out: dict[str, Value] = {}
        self._relation = relation
        self._leaves: dict[str, dict[str, BitSlice]] = {}
        self.places: dict[str, tuple[str, BitSlice]] = {}
        for name in (*cut.states, *cut.reads, *cut.inputs, *cut.outputs):
            self.leaves(name)
        for port in (*cut.reads.values(), *cut.writes.values()):
            self.leaves(port.memory, port.width)

    def leaves(self, parent: str, width: int | None = None) -> dict[str, BitSlice]:
        """Members of a register, port or memory by full name; itself if it has none."""
        if parent in self._leaves:
            return self._leaves[parent]
        cut = self.cut
        if width is None:
            width = cut.width(parent)
        if parent in self._relation.layouts:
            inner = members(self._relation.layouts[parent][self.which])
            fields = {name: BitSlice(parent, *place) for name, place in inner.items()}
        elif any(parent in names for names in (cut.states, cut.reads, cut.inputs, cut.outputs)):
            fields = cut.leaves(parent)
        else:
            fields = {"": BitSlice(parent, 0, width, False)}
        named = {
            parent if not name else parent + ("" if name[0] == "[" else ".") + name: place
            for name, place in fields.items()
        }
        self._leaves[parent] = named
        self.places |= {name: (parent, place) for name, place in named.items()}
        return named

    def holds(self, parent: str) -> bool:
        """Whether ``parent`` is a register, read port or input, whose value is generated."""
        return any(parent in names for names in (self.cut.states, self.cut.reads, self.cut.inputs))

    def part(self, words: Mapping[str, Value], name: str) -> Value:
        """Member ``name`` of its parent's word in ``words``."""
        parent, place = self.places[name]
        return words[parent][place.low : place.low + place.width]


class SideView:
    """Values of a design at one time, made on demand.

    Parameters:
        value: makes that of a register, member or port by name. local: names that have other
            values here.
    """

    def __init__(
        self, side: Side, value: Callable[[str], Value], local: Mapping[str, Value] | None = None
    ) -> None:
        self._side = side
        self._value = value
        self.local = local or {}

    def __getitem__(self, name: str) -> Value:
        return self.local[name] if name in self.local else self._value(name)

    def has(self, name: str) -> bool:
        return name in self.local or name in self._side.places or name in self._side.out

    def within(self, local: Mapping[str, Value]) -> "SideView":
        """The same, but with the values ``local``."""
        return SideView(self._side, self._value, local) if local else self


def initial(cut: CutDesign, parent: str) -> Value:
    """Value of register or read port ``parent`` after reset."""
    if parent in cut.reads:
        return Const(0, cut.reads[parent].width)
    return Const(cut.states[parent].init, cut.states[parent].width)


def matches(codes: Codes, parts: list[dict[str, Value]]) -> Value:
    """1 if the members of both designs are those of a word of ``codes``."""
    cases = []
    for word in codes.words:
        terms: list[Value] = [Const(1, 1)]
        for name, pair in zip(codes.names, word, strict=True):
            for part, code in zip(parts, pair, strict=True):
                if name in part and code is not None:
                    terms.append(part[name] == code)
        cases.append(Cat(terms).all())
    return Cat(cases).any()
