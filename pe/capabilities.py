"""An engine's instructions: subsets of them, and compact encodings of their fields.

Every unit asks a :class:`Capabilities` what to build: subsets of the instructions (falsy if empty),
the widths that follow, and field encodings in as few bits as possible.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from amaranth.hdl import Value

from hdl.packing import Packing
from hdl.simd import one_of
from isa.table import (
    BY_KEY,
    FIELD_C,
    MAX_VL,
    OPCODE,
    PAIRS,
    REDUCTION,
    VERTICAL,
    WIDTH,
    BitField,
    BranchOp,
    Instruction,
    Opcode,
    ReductionOp,
    ScalarOp,
    Unit,
    VerticalOp,
    Width,
)

from .codes import CLASSES, CONTROL, DECLARE, ControlOp, IssueClass
from .config import PeConfig

#: Widths whose lanes are folded before they are paired (:mod:`pe.vector.fold`).
FOLDED = frozenset({Width.W8, Width.W16})
#: Widths whose elements have several limbs to multiply (:mod:`pe.vector.products`).
LONG = frozenset({Width.W32, Width.W64})

_KIND = BitField("kind", OPCODE.low + 1, OPCODE.low)
#: Fields of a word that select a vector instruction's operation, from decode to the vector unit. A
#: new one adds a line here and an encoding of the same name in :class:`Capabilities`.
OPERATION: Mapping[str, BitField] = {
    "kind": _KIND,
    "vertical": VERTICAL,
    "reduction": REDUCTION,
    "pairs": PAIRS,
    "width": WIDTH,
}
#: Bits of ``kind`` of a load or store.
_STORE, _REGISTER = 0, 1
#: Extra bits of a sum over the longest row.
_SUM_BITS = (MAX_VL - 1).bit_length()
#: Levels at which the vertical stage folds lanes (:mod:`pe.vector.fold`), by width.
_FOLD_LEVELS = {Width.W8: 2, Width.W16: 1, Width.W32: 0, Width.W64: 0}
#: The instruction on single numbers that has the same products as the one on pairs.
_OF_PAIRS = "m.v.mul.add[8]"
#: Widest value passed on in one half of a word pair.
_HALF_BITS = 64


def _packing(values: Iterable[int | None], bits: int, enumeration: object = None) -> Packing:
    return Packing(frozenset(value for value in values if value is not None), bits, enumeration)


def _scalar(row: Instruction) -> int | None:
    # The decoder makes moves from an OR.
    return ScalarOp.OR if row.opcode in (Opcode.MOV, Opcode.MOV_IMM) else row.scalar


def _is_product(row: Instruction) -> bool:
    return row.vertical is VerticalOp.MUL


def _width(row: Instruction) -> Width:
    assert row.width is not None
    return row.width


def _grown(row: Instruction, levels: int) -> int:
    """Bits of an element's value after ``levels`` levels of the row reduction."""
    return row.value_bits + (levels if row.reduction is ReductionOp.ADD else 0)


@dataclass(frozen=True)
class Capabilities:
    """A set of instructions: its subsets, its properties, and encodings of its fields.

    Attributes:
        rows: rows of the instruction table, in its order.
    """

    rows: tuple[Instruction, ...]

    @staticmethod
    @cache
    def of(config: PeConfig) -> "Capabilities":
        """The instructions of ``config``."""
        return Capabilities(config.rows)

    def __bool__(self) -> bool:
        return bool(self.rows)

    def _those(self, predicate: Callable[[Instruction], bool]) -> "Capabilities":
        return Capabilities(tuple(row for row in self.rows if predicate(row)))

    # Subsets: transfers.

    @cached_property
    def memory(self) -> "Capabilities":
        """Instructions of the load-store unit."""
        return self._those(lambda row: row.unit is Unit.LOAD_STORE)

    @cached_property
    def transfers(self) -> "Capabilities":
        """Loads and stores between memory and scratchpad."""
        return self.memory._those(lambda row: bool(row.scratchpad))

    @cached_property
    def registers(self) -> "Capabilities":
        """Loads and stores between memory and registers."""
        return self.memory._those(lambda row: not row.scratchpad)

    @cached_property
    def loads(self) -> "Capabilities":
        """Loads."""
        return self._those(lambda row: row.loads)

    @cached_property
    def stores(self) -> "Capabilities":
        """Stores."""
        return self.memory._those(lambda row: not row.loads)

    # Subsets: vectors.

    @cached_property
    def vector(self) -> "Capabilities":
        """Instructions of the vector unit."""
        return self._those(lambda row: row.unit is Unit.VECTOR)

    @cached_property
    def binary(self) -> "Capabilities":
        """Vector instructions with a second operand."""
        return self.vector._those(lambda row: FIELD_C in row.reads)

    @cached_property
    def unary(self) -> "Capabilities":
        """Vector instructions without a second operand."""
        return self.vector._those(lambda row: FIELD_C not in row.reads)

    @cached_property
    def fractions(self) -> "Capabilities":
        """Instructions that shift by FX."""
        return self._those(lambda row: row.fractions)

    @cached_property
    def products(self) -> "Capabilities":
        """Instructions that multiply elements."""
        return self._those(_is_product)

    @cached_property
    def special(self) -> "Capabilities":
        """Instructions of special units (:mod:`pe.vector.special`)."""
        return self._those(lambda row: bool(row.special))

    def of_special(self, name: str) -> "Capabilities":
        """Instructions of the special unit called ``name``."""
        return self._those(lambda row: row.special == name)

    @cached_property
    def plain(self) -> "Capabilities":
        """Instructions that add, subtract, compare or pass elements through."""
        return self._those(lambda row: row.vertical is not None and not _is_product(row))

    @cached_property
    def reduced(self) -> "Capabilities":
        """Instructions that reduce rows of a matrix."""
        return self._those(lambda row: row.reduction is not None)

    @cached_property
    def elementwise(self) -> "Capabilities":
        """Instructions without a reduction."""
        return self._those(lambda row: row.reduction is None)

    @cached_property
    def summed(self) -> "Capabilities":
        """Instructions that reduce by add."""
        return self._those(lambda row: row.reduction is ReductionOp.ADD)

    @cached_property
    def of_numbers(self) -> "Capabilities":
        """The instructions as the stages from multipliers to writeback see them: a row of pairs has
        the products of a row of narrower elements."""
        return Capabilities(tuple(BY_KEY[_OF_PAIRS] if row.pairs else row for row in self.rows))

    @cached_property
    def broadcast(self) -> "Capabilities":
        """Instructions whose second operand is one element."""
        return self._those(lambda row: row.opcode == Opcode.VECTOR_SCALAR)

    def of_widths(self, widths: Iterable[Width]) -> "Capabilities":
        """Instructions on elements of the given widths."""
        selected = frozenset(widths)
        return self._those(lambda row: row.width in selected)

    # Values of their fields.

    @cached_property
    def widths(self) -> frozenset[Width]:
        """Element widths."""
        return frozenset(row.width for row in self.rows if row.width is not None)

    @cached_property
    def verticals(self) -> frozenset[VerticalOp]:
        """Element-wise operations."""
        return frozenset(row.vertical for row in self.rows if row.vertical is not None)

    @cached_property
    def functions(self) -> frozenset[int]:
        """Codes of vector instructions in the field ``VERTICAL``."""
        return frozenset(VERTICAL.extract(row.match) for row in self.vector.rows)

    @cached_property
    def reductions(self) -> frozenset[ReductionOp]:
        """Reductions."""
        return frozenset(row.reduction for row in self.rows if row.reduction is not None)

    @property
    def most_passes(self) -> int:
        """Maximum cycles per word."""
        return max((row.passes for row in self.rows), default=1)

    @property
    def has_long_products(self) -> bool:
        """Whether there are products of 64-bit elements, which need both halves of a pair."""
        return Width.W64 in self.products.widths

    # Bits of values in the vector unit, for its instructions alone.

    @property
    def lower_bits(self) -> int:
        """Bits of the lower half of the pair that the vertical stage outputs; 0 without rows."""
        sizes = [_HALF_BITS for _ in self.elementwise.rows]
        sizes += [
            min(_HALF_BITS, _grown(row, _FOLD_LEVELS[_width(row)])) for row in self.reduced.rows
        ]
        return max(sizes, default=0)

    @property
    def upper_bits(self) -> int:
        """Bits of the upper half; 0 if never used."""
        sizes = [_HALF_BITS for _ in self.elementwise.products.rows]
        sizes += [
            min(_HALF_BITS, _grown(row, _FOLD_LEVELS[_width(row)]))
            for row in self.reduced.rows
            if _width(row) is not Width.W64 or _is_product(row)
        ]
        return max(sizes, default=0)

    @property
    def beat_bits(self) -> int:
        """Bits of the value of a beat: all lanes, or the reduction of them."""
        sizes = [_HALF_BITS * (2 if _is_product(row) else 1) for row in self.elementwise.rows]
        for row in self.reduced.rows:
            levels = 3 - _width(row).value
            sizes.append(_grown(row, levels))
        return max(sizes, default=0)

    @property
    def total_bits(self) -> int:
        """Bits of the value of a row: as :attr:`beat_bits`, or reduced over all beats."""
        sizes = [_HALF_BITS * (2 if _is_product(row) else 1) for row in self.elementwise.rows]
        sizes += [_grown(row, _SUM_BITS) for row in self.reduced.rows]
        return max(sizes, default=0)

    # Encodings.

    @cached_property
    def unit(self) -> Packing:
        """:class:`IssueClass`."""
        return _packing((CLASSES[row.unit].value for row in self.rows), 2, IssueClass)

    @cached_property
    def control(self) -> Packing:
        """Codes of :data:`CONTROL`."""
        codes = [CONTROL[Opcode(row.opcode)] for row in self.rows if row.unit is Unit.ISSUE]
        return _packing(codes, 3, None if DECLARE in codes else ControlOp)

    @cached_property
    def kind(self) -> Packing:
        """Low bits of the opcode: operand form of a vector instruction; of a load or store bit 0 is
        set for a store and bit 1 for a register."""
        rows = (*self.vector.rows, *self.memory.rows)
        return _packing((row.opcode & 3 for row in rows), _KIND.bits)

    @cached_property
    def width(self) -> Packing:
        """:class:`isa.table.Width`."""
        return _packing(self.widths, WIDTH.bits)

    @cached_property
    def vertical(self) -> Packing:
        """:class:`isa.table.VerticalOp`, or the function of a special unit, in the same bits."""
        return _packing(self.functions, VERTICAL.bits)

    @cached_property
    def reduction(self) -> Packing:
        """:class:`isa.table.ReductionOp`; 0 without one."""
        return _packing((row.reduction or 0 for row in self.vector.rows), REDUCTION.bits)

    @cached_property
    def pairs(self) -> Packing:
        """Whether the elements of a vector instruction are pairs."""
        return _packing((int(row.pairs) for row in self.vector.rows), PAIRS.bits)

    @cached_property
    def operation(self) -> dict[str, Packing]:
        """Of each field of :data:`OPERATION`."""
        return {name: getattr(self, name) for name in OPERATION}

    @property
    def operation_members(self) -> dict[str, Any]:
        """Shapes of the fields of :data:`OPERATION`, as members of the layouts they pass
        through."""
        return {name: packing.shape for name, packing in self.operation.items()}

    def carry(self, target: Any, source: Any, encoding: "Capabilities") -> list[Any]:
        """Assignments of an operation's fields in ``source``, as ``encoding`` encodes them, to
        those in ``target``."""
        return [
            target[name].eq(
                source[name]
                if packing == encoding.operation[name]
                else packing.pack(encoding.operation[name].unpack(source[name]))
            )
            for name, packing in self.operation.items()
        ]

    @cached_property
    def scalar(self) -> Packing:
        """:class:`isa.table.ScalarOp`."""
        return _packing((_scalar(row) for row in self.rows), max(ScalarOp).bit_length())

    @cached_property
    def condition(self) -> Packing:
        """:class:`isa.table.BranchOp`."""
        return _packing((row.branch for row in self.rows), max(BranchOp).bit_length())

    def flag(self, subset: "Capabilities") -> Packing:
        """A bit: 1 for the instructions in ``subset``."""
        values = {1} if subset else set()
        if len(subset.rows) < len(self.rows):
            values.add(0)
        return Packing(frozenset(values), 1)

    def is_unit(self, unit: Value, issue_class: IssueClass) -> Value:
        """Whether the instruction goes to ``issue_class``."""
        return self.unit.is_one_of(unit, [issue_class.value])

    def is_form(self, kind: Value, opcode: Opcode) -> Value:
        """Whether a vector instruction has the operand form of ``opcode``."""
        forms = {row.opcode & 3 for row in self.vector.rows}
        return one_of(self.kind.unpack(kind), [opcode & 3], forms)

    def is_unary(self, kind: Value, vertical: Value) -> Value:
        """Whether a vector instruction has no second operand."""
        unary = one_of(self.vertical.unpack(vertical), self.unary.verticals, self.verticals)
        # Functions of special units share the bits of the vertical operation.
        return unary | self.is_form(kind, Opcode.SPECIAL) if self.special else unary

    def multiplies(self, kind: Value, vertical: Value) -> Value:
        """Whether a vector instruction multiplies elements."""
        product = one_of(self.vertical.unpack(vertical), [VerticalOp.MUL], self.verticals)
        return product & ~self.is_form(kind, Opcode.SPECIAL) if self.special else product

    def is_store(self, kind: Value) -> Value:
        """Whether a load or store is a store."""
        return self._kind_bit(kind, _STORE)

    def is_register(self, kind: Value) -> Value:
        """Whether a load or store moves a register."""
        return self._kind_bit(kind, _REGISTER)

    def _kind_bit(self, kind: Value, bit: int) -> Value:
        bits = {row.opcode >> bit & 1 for row in self.memory.rows}
        # Only loads and stores count: vector instructions that differ only in latency leave no
        # choice.
        return one_of(self.kind.unpack(kind)[bit], [1], bits)
