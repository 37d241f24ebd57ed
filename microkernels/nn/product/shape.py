"""Products of two maps, group by group: sizes, and the golden model.

A column of pixels of a map is a *group*: a matrix whose rows are the pixels. The product of a group
of the first map and the transposed one of the second has an element for each two rows. So the
scores of attention are the product of queries and keys, whose heads are groups.
"""

from dataclasses import dataclass

import numpy as np

from isa.table import MAX_VL
from microkernels.common.errors import CHECK
from microkernels.common.fixed_point import Elements, check_elements, check_fraction, dot

__all__ = ["MOST_INNER", "ProductShape", "product"]

#: Elements of a row at most: its products are one exact sum.
MOST_INNER = MAX_VL


@dataclass(frozen=True, kw_only=True)
class ProductShape:
    """Sizes of a product of two maps.

    Attributes:
        groups: columns of pixels of the output, at least 1.
        rows, columns: pixels of a group of the first and of the second map, at least 1 each. The
            output has ``rows`` pixels in a group, of ``columns`` channels.
        inner: channels of both maps, 1..:data:`MOST_INNER`.
        fraction: bits by which sums of products are shifted right, 0..15.
        shared: the first and the second map have one group, which serves all groups of the output.

    Raises:
        KernelError: a value outside its range.
    """

    groups: int
    rows: int
    columns: int
    inner: int
    fraction: int
    shared: tuple[bool, bool] = (False, False)

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("groups", "rows", "columns"):
            CHECK.at_least(name, getattr(self, name), 1)
        CHECK.within("inner", self.inner, 1, MOST_INNER)
        check_fraction(self.fraction)

    @property
    def widths(self) -> tuple[int, int]:
        """Groups of both maps."""
        first, second = self.shared
        return (1 if first else self.groups, 1 if second else self.groups)

    @property
    def operations(self) -> int:
        """Additions and multiplications."""
        return 2 * self.groups * self.rows * self.columns * self.inner


def product(shape: ProductShape, first: Elements, second: Elements) -> Elements:
    """Golden model of the kernel, bit-exact.

    Parameters:
        first: rows x groups (or 1) x inner elements.
        second: columns x groups (or 1) x inner elements.

    Returns:
        rows x groups x columns elements.

    Raises:
        KernelError: an array of another shape, or values beyond 16 bits.
    """
    one, other = shape.widths
    first = check_elements("first", first, (shape.rows, one, shape.inner))
    second = check_elements("second", second, (shape.columns, other, shape.inner))
    found: Elements = dot(first.transpose(1, 0, 2), second.transpose(1, 2, 0), shape.fraction)
    return np.ascontiguousarray(found.transpose(1, 0, 2))
