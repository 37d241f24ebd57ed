"""Variants of an update: with weights of the edges, with damping.

*Weights.* The weight of an edge multiplies its smoothness costs (equation 3.1a). Two elements
follow the labels of a vector: after the data costs the weights of the edges to the right and to
the left of the pixel, after the messages that move right those of the edges down and up. So they
end the three vectors that a sweep reads (:mod:`microkernels.bp.record`), the one of the edge that
the sweep goes along first, then that of the edge back, and no message is stored over them. Vectors
are as far apart as those of two more labels.

*Damping.* A new message ``n`` is mixed with the one that it replaces, ``o``, as
:func:`microkernels.bp.golden.sweep` says::

    m = n + (((o - n) * damping + 8) >> 4)

each sum and difference saturated: three instructions of the vector unit with 4 fraction bits, and
the load of ``o``.
"""

from dataclasses import dataclass

__all__ = ["DAMPING_BITS", "TAIL", "USUAL", "UpdateVariant"]

#: Weights after the labels of a vector.
TAIL = 2
#: Fraction bits of damping: it counts sixteenths.
DAMPING_BITS = 4


@dataclass(frozen=True)
class UpdateVariant:
    """How an update differs from the usual one.

    Attributes:
        weighted: the problem has edge weights.
        damping: sixteenths of the old message in a new one; 0: none. Programs are the same for all
            others.
    """

    weighted: bool = False
    damping: int = 0

    @property
    def damped(self) -> bool:
        """There is damping."""
        return self.damping > 0

    @property
    def usual(self) -> bool:
        """Neither weights nor damping."""
        return not (self.weighted or self.damped)

    @property
    def tail(self) -> int:
        """Elements after the labels of a vector."""
        return TAIL if self.weighted else 0


#: Neither weights nor damping.
USUAL = UpdateVariant()
