"""What the vector unit must be able to do for a configuration, and the widths that follow."""

from collections.abc import Iterable
from dataclasses import dataclass

from isa.table import MAX_VL, Instruction, Opcode, ReductionOp, Unit, VerticalOp, Width
from pe.config import PeConfig
from pe.ports import VectorKind

__all__ = ["FOLDED", "LONG", "VectorNeeds"]

#: Widths whose lanes are folded before they are paired (:mod:`pe.vector.fold`).
FOLDED = frozenset({Width.W8, Width.W16})
#: Widths whose elements have several limbs to multiply (:mod:`pe.vector.products`).
LONG = frozenset({Width.W32, Width.W64})

#: Bits by which a sum over the longest row outgrows its elements.
_SUM_BITS = (MAX_VL - 1).bit_length()
#: Levels at which the vertical stage folds lanes (:mod:`pe.vector.fold`), by width.
_FOLD_LEVELS = {Width.W8: 2, Width.W16: 1, Width.W32: 0, Width.W64: 0}
#: Widest value that is handed on in one half of a word pair.
_HALF_BITS = 64


def _is_product(row: Instruction) -> bool:
    return row.vertical is VerticalOp.MUL


def _width(row: Instruction) -> Width:
    assert row.width is not None
    return row.width


def _element_bits(row: Instruction) -> int:
    """Bits of what the vertical stage makes of an element: products have full width."""
    return _width(row).bits * (2 if _is_product(row) else 1)


def _grown(row: Instruction, levels: int) -> int:
    """Bits of an element's value after ``levels`` levels of the row's reduction."""
    return _element_bits(row) + (levels if row.reduction is ReductionOp.ADD else 0)


@dataclass(frozen=True)
class VectorNeeds:
    """The vector instructions of a configuration, and questions about them.

    Every sub-unit of the vector unit asks here which operations, widths and bits to build.

    Attributes:
        rows: the configuration's rows of :class:`isa.table.Unit` VECTOR.
    """

    rows: tuple[Instruction, ...]

    @classmethod
    def of(cls, config: PeConfig) -> "VectorNeeds":
        """The needs of ``config``."""
        return cls(config.rows_of(Unit.VECTOR))

    @property
    def widths(self) -> frozenset[Width]:
        """Element widths."""
        return frozenset(_width(row) for row in self.rows)

    @property
    def verticals(self) -> frozenset[VerticalOp]:
        """Vertical operations."""
        return frozenset(row.vertical for row in self.rows if row.vertical is not None)

    @property
    def kinds(self) -> frozenset[VectorKind]:
        """Operand forms."""
        return frozenset(VectorKind(row.opcode - Opcode.MATRIX_VECTOR) for row in self.rows)

    @property
    def products(self) -> "VectorNeeds":
        """Only the rows that multiply."""
        return VectorNeeds(tuple(row for row in self.rows if _is_product(row)))

    @property
    def logistic(self) -> "VectorNeeds":
        """Only the rows of logistic functions."""
        return VectorNeeds(tuple(row for row in self.rows if row.logistic is not None))

    @property
    def plain(self) -> "VectorNeeds":
        """Only the rows that add, subtract, compare or pass on elements."""
        return VectorNeeds(
            tuple(row for row in self.rows if row.vertical is not None and not _is_product(row))
        )

    @property
    def reduced(self) -> "VectorNeeds":
        """Only the rows that reduce."""
        return VectorNeeds(tuple(row for row in self.rows if row.reduction is not None))

    @property
    def elementwise(self) -> "VectorNeeds":
        """Only the rows that do not reduce."""
        return VectorNeeds(tuple(row for row in self.rows if row.reduction is None))

    @property
    def summed(self) -> "VectorNeeds":
        """Only the rows that reduce by add."""
        return VectorNeeds(tuple(row for row in self.rows if row.reduction is ReductionOp.ADD))

    @property
    def broadcast(self) -> "VectorNeeds":
        """Only the rows whose second operand is one element."""
        return VectorNeeds(tuple(row for row in self.rows if row.opcode == Opcode.VECTOR_SCALAR))

    @property
    def reductions(self) -> frozenset[ReductionOp]:
        """Reductions."""
        return frozenset(row.reduction for row in self.rows if row.reduction is not None)

    def of_widths(self, widths: Iterable[Width]) -> "VectorNeeds":
        """Only the rows of the given element widths."""
        wanted = frozenset(widths)
        return VectorNeeds(tuple(row for row in self.rows if row.width in wanted))

    @property
    def most_passes(self) -> int:
        """Most cycles that a word takes."""
        return max((row.passes for row in self.rows), default=1)

    @property
    def has_long_products(self) -> bool:
        """Whether there are products of 64-bit elements, which need both halves of a pair."""
        return Width.W64 in self.products.widths

    @property
    def lower_bits(self) -> int:
        """Bits of the lower half of the pair that the vertical stage hands on; 0 without rows."""
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
