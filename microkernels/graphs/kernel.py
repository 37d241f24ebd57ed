"""One engine's messages on a graph: a work list, with vectors of any length from item to item.

An item of the list has addresses and lengths of one message (:class:`Item`). Items are processed in
pairs, X and Y, whose instructions alternate. For pair k the program

1. computes ``t`` and ``e = belief[v] - o`` of pair k; ``v.drain``;
2. stores messages and beliefs of pair k - 1;
3. loads vectors and matrices of pair k + 1, whose items were read before, into the same slots;
4. computes ``r`` of pair k, and meanwhile reads the items of pair k + 2; ``v.drain``;
5. computes ``m = r - r[0]``; ``v.drain``; ``belief = e + m``.

The soft minimum (:mod:`microkernels.graphs.soft`) takes the place of ``r``: ``t`` is added to the
rows of the matrix, then halves of the rows are joined, of X and Y in turns, with a ``v.drain``
after each operation. If one of them is left with a single row before the other, it is joined with
the largest elements, which changes nothing. ``r`` is the first row.

So pair k + 1 is loaded before pair k is stored: of :data:`WINDOW` items in a row none changes a
belief that another uses. Where the graph has no such message left, the list has an *idle* item, of
one label in places of its own. Vectors may have any length, so ``v.drain`` orders results: their
distance in beats is unknown.
"""

from dataclasses import dataclass, fields

from isa.program import Program
from isa.table import MAX_VL
from microkernels.common.builder import DEFAULT_SCRATCHPAD, KernelBuilder
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import round_up
from microkernels.common.parameter_block import Word, WordRecord, word

from .soft import COEFFICIENTS, CONSTANTS, FACTOR_SHIFT, FRACTION, RESULT_SHIFT

#: Items in a row that share no belief: two pairs.
WINDOW = 4
#: Vectors of a slot: t, the opposite message, belief or e, old message, r, m.
_VECTORS = ("t", "opposite", "belief", "old", "r", "m")
_ALIGN = 16
_PAIR = "xy"


@dataclass(frozen=True, kw_only=True)
class Item(WordRecord[Word]):
    """A message from u to v."""

    total: Word = word("address of the belief of u")
    opposite: Word = word("address of the message from v to u")
    matrix: Word = word("address of the costs, a row for each label of v")
    belief: Word = word("address of the belief of v")
    message: Word = word("address of the message")
    source: Word = word("labels of u")
    target: Word = word("labels of v")
    pairs: Word = word("labels of u times labels of v")


def slot_bytes(labels: int, pairs: int) -> tuple[int, int]:
    """Bytes of a vector and of a slot for at most ``labels``, and ``pairs`` of them."""
    vector = round_up(2 * labels, _ALIGN)
    return vector, round_up(2 * pairs, _ALIGN) + len(_VECTORS) * vector


#: Fraction bits of products of the soft minimum.
_SHIFTS = (FACTOR_SHIFT, FRACTION, RESULT_SHIFT)


def soft_bytes(labels: int, pairs: int) -> tuple[int, int, int]:
    """Bytes of the constants, of the largest elements, and of a half of the rows."""
    constants = round_up(2 * len(CONSTANTS), _ALIGN)
    return constants, round_up(2 * labels, _ALIGN), round_up(pairs, _ALIGN)


@CHECK.arguments
def graph_program(
    labels: int, pairs: int, *, soft: bool = False, scratchpad_bytes: int = DEFAULT_SCRATCHPAD
) -> Program:
    """The program for a work list at the address in the start register ``parameters``: its number
    of twice two items, the address of the constants of the soft minimum if there is one, then the
    items.

    Parameters:
        labels: most labels of a variable. pairs: most pairs of labels of an edge.
        soft: by the soft minimum.

    Raises:
        KernelError: two pairs of items don't fit the scratchpad, or half of the pairs of labels the
            vector length.
    """
    _, slot = slot_bytes(labels, pairs)
    used = 4 * slot
    if soft:
        constants, largest, half = soft_bytes(labels, pairs)
        used += constants + largest + 2 * len(_PAIR) * half
        CHECK.within("pairs of labels, filled up, for soft minima", pairs, 1, 2 * MAX_VL)
    if used > scratchpad_bytes:
        raise KernelError(
            f"edges of {pairs} pairs of labels and {labels} labels take {used} bytes of the "
            f"scratchpad, which has {scratchpad_bytes}"
        )
    return _GraphKernel(labels, pairs, soft=soft).program("graph.s")


class _GraphKernel(KernelBuilder):
    def __init__(self, labels: int, pairs: int, *, soft: bool) -> None:
        super().__init__(
            "Messages of a graph, by a list. See microkernels.graphs.kernel.",
            launch=("parameters",),
        )
        vector, slot = slot_bytes(labels, pairs)
        start = round_up(2 * pairs, _ALIGN)
        self._offset = {name: start + n * vector for n, name in enumerate(_VECTORS)}
        self._offset["matrix"] = 0
        self._slot = slot
        #: Items of even and odd pairs, which have slots of their own.
        self._items = [
            {one: self._item(f"{parity}_{one}", f"{parity} item {one}") for one in _PAIR}
            for parity in ("even", "odd")
        ]
        #: Address, belief and labels of messages that are to be stored.
        self._kept = {
            one: [
                self.register(f"kept_{part}_{one}", f"{part} of the last {one}")
                for part in ("message", "belief", "target")
            ]
            for one in _PAIR
        }
        self._at = [self.register(f"at_{n}", "place in a slot") for n in range(3)]
        left = self.register("left", "even pairs left")
        self._soft = soft
        if soft:
            self._soft_registers(labels, pairs)
        self.set_constants()
        self.note("The first pairs.")
        self.read(left, "parameters")
        if soft:
            self._load_constants(labels)
        for parity in range(2):
            self._read_items(parity)
        self._load(0)
        with self.loop("pair", left):
            self._pair(0)
            self._pair(1)
        self.note("The last pair.")
        self.op("v.drain")
        self._store(1)
        self.op("halt")

    def _item(self, stem: str, purpose: str) -> Item[str]:
        names = {
            one.name: self.register(f"{stem}_{one.name}", f"{purpose}: {one.metadata['purpose']}")
            for one in fields(Item)
        }
        return Item(**names)

    def _read_items(self, parity: int) -> None:
        for item in self._items[parity].values():
            for number in item.words():
                self.read(number, "parameters")

    def _vectors(self, parity: int, one: str, *names: str) -> list[str]:
        """Registers with the addresses of vectors of item ``one``."""
        slot = len(_PAIR) * parity + _PAIR.index(one)
        for at, name in zip(self._at, names, strict=False):
            self.op("mov", at, self._slot * slot + self._offset[name])
        return self._at

    def _load(self, parity: int) -> None:
        for one, item in self._items[parity].items():
            for name, address, count in (
                ("matrix", item.matrix, item.pairs),
                ("t", item.total, item.source),
                ("opposite", item.opposite, item.source),
                ("belief", item.belief, item.target),
                ("old", item.message, item.target),
            ):
                place, *_ = self._vectors(parity, one, name)
                self.load(place, address, count, note=f"{name} of {one}")

    def _store(self, parity: int) -> None:
        for one in _PAIR:
            message, belief, target = self._kept[one]
            for name, address in (("m", message), ("belief", belief)):
                place, *_ = self._vectors(parity, one, name)
                self.store(address, place, target, note=f"{name} of {one}")

    def _pair(self, parity: int) -> None:
        self.note(f"Pairs that are {('even', 'odd')[parity]}.")
        items = self._items[parity]
        for one, item in items.items():
            t, opposite, *_ = self._vectors(parity, one, "t", "opposite")
            self.op("set.vl", item.source)
            self.vector("v.v.sub", t, t, opposite, note=f"t of {one}")
            belief, old, *_ = self._vectors(parity, one, "belief", "old")
            self.op("set.vl", item.target)
            self.vector("v.v.sub", belief, belief, old, note=f"e of {one}")
        self.op("v.drain")
        self._store(1 - parity)
        self._load(1 - parity)
        if self._soft:
            self._soft_minima(parity)
        else:
            for one, item in items.items():
                r, matrix, t = self._vectors(parity, one, "r", "matrix", "t")
                self.op("set.vl", item.source)
                self.op("set.mr", item.target)
                self.vector("m.v.add.min", r, matrix, t, note=f"r of {one}")
        for one, item in items.items():
            kept = (item.message, item.belief, item.target)
            for own, register in zip(self._kept[one], kept, strict=True):
                self.op("mov", own, register)
        self._read_items(parity)
        self.op("v.drain")
        for one in _PAIR:
            m, r, *_ = self._vectors(parity, one, "m", "matrix" if self._soft else "r")
            self.op("set.vl", self._kept[one][2])
            self.vector("v.s.sub", m, r, r, note=f"m of {one}")
        self.op("v.drain")
        for one in _PAIR:
            belief, m, *_ = self._vectors(parity, one, "belief", "m")
            self.op("set.vl", self._kept[one][2])
            self.vector("v.v.add", belief, belief, m, note=f"belief of {one}")

    def _soft_registers(self, labels: int, pairs: int) -> None:
        constants, largest, half = soft_bytes(labels, pairs)
        at = len(_PAIR) * 2 * self._slot
        self._constants_at = at
        for number in _SHIFTS:
            self.constant(f"shift_{number}", number, "fraction bits of products")
        self.constant("nothing", at + constants, "address of the largest elements")
        at += constants + largest
        for one in _PAIR:
            self.register(f"rows_{one}", f"elements of half of the rows of {one}")
            self.register(f"low_{one}", f"address of the rows of {one}")
            self.register(f"high_{one}", "address of their second half")
            for part in ("unit", "term"):
                self.constant(f"{part}_{one}", at, f"address of the {part} of {one}")
                at += half

    def _load_constants(self, labels: int) -> None:
        """Load the constants and make the largest elements of their first."""
        address, count, _ = self._at
        self.read(address, "parameters")
        self.op("mov", count, len(CONSTANTS))
        self.op("mov", "low_x", self._constants_at)
        self.load("low_x", address, count)
        self.op("add", "low_x", "low_x", 2)
        self.op("mov", count, 1)
        self.op("set.vl", count)
        self.op("set.fx", "zero")
        place, left, _ = self._at
        self.op("mov", place, "nothing")
        self.op("mov", left, labels)
        with self.loop("fill", left):
            self.vector("v.s.mul", place, "low_x", "low_x", note="the factor's square saturates")
            self.op("add", place, place, 2)
        self.op("v.drain")

    def _soft_minima(self, parity: int) -> None:
        """Soft minima of the columns of both matrices with ``t`` added to their rows."""
        items = self._items[parity]
        for one, item in items.items():
            rows, t, left = self._vectors(parity, one, "matrix", "t")
            self.op("mov", f"low_{one}", rows)
            self.op("sll", f"high_{one}", item.target, 1)
            self.op("mov", left, item.source)
            self.op("set.vl", item.target)
            with self.loop(self.new_label("row"), left):
                self.vector("v.s.add", rows, rows, t, note=f"a row of {one}")
                self.op("add", rows, rows, f"high_{one}")
                self.op("add", t, t, 2)
            self.op("mov", f"rows_{one}", item.pairs)
        self.op("v.drain")
        with self.loop(self.new_label("halve")) as again:
            for one, item in items.items():
                rows, high = f"rows_{one}", f"high_{one}"
                self.op("mov", high, "nothing")
                with self.unless("beq", rows, item.target):
                    self.op("srl", rows, rows, 1)
                    self.op("sll", high, rows, 1)
                    self.op("add", high, f"low_{one}", high)
            self._join()
            self.op("bne", "rows_x", items["x"].target, again)
            self.op("bne", "rows_y", items["y"].target, again)

    def _join(self) -> None:
        """The soft minimum of both halves of the rows of X and Y; it replaces the first half."""
        self._both("v.v.max", "unit", "low", "high")
        self._both("v.v.min", "low", "low", "high", drain=True)
        self._both("v.v.sub", "unit", "unit", "low", drain=True)
        constant = iter(range(len(CONSTANTS)))
        self._both("v.s.sub", "unit", "unit", constant=next(constant), drain=True)
        self.op("set.fx", f"shift_{FACTOR_SHIFT}")
        self._both("v.s.mul", "unit", "unit", constant=next(constant), drain=True)
        self.op("set.fx", f"shift_{FRACTION}")
        self._both("v.s.mul", "term", "unit", constant=next(constant), drain=True)
        for _ in COEFFICIENTS[1:-1]:
            self._both("v.s.add", "term", "term", constant=next(constant), drain=True)
            self._both("v.v.mul", "term", "term", "unit", drain=True)
        self._both("v.s.add", "term", "term", constant=next(constant), drain=True)
        self.op("set.fx", f"shift_{RESULT_SHIFT}")
        self._both("v.s.mul", "term", "term", constant=next(constant), drain=True)
        self._both("v.v.sub", "low", "low", "term", drain=True)

    def _both(
        self, mnemonic: str, *parts: str, constant: int | None = None, drain: bool = False
    ) -> None:
        """An operation of X and of Y, whose last operand may be a constant, by its place."""
        operand = self._at[0]
        if constant is not None:
            self.op("mov", operand, self._constants_at + 2 * constant)
        for one in _PAIR:
            self.op("set.vl", f"rows_{one}")
            operands = [f"{part}_{one}" for part in parts]
            self.vector(mnemonic, *operands, *[operand] * (constant is not None))
        if drain:
            self.op("v.drain")
