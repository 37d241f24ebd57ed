"""Special units: optional functional units for functions of single elements.

A special unit declares its part of the instruction set here; :mod:`isa.units` lists the units, from
which table, simulator and manual follow. The hardware side is in :mod:`pe.vector.special`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from .instruction import (
    VERTICAL,
    WIDTH,
    Access,
    Extent,
    Format,
    Instruction,
    Opcode,
    Origin,
    Role,
    Unit,
    Width,
)

if TYPE_CHECKING:
    # The assembler needs only the table, and starts without NumPy.
    import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"
#: Width of the elements: the compiled simulator has a table of the results of all 16-bit ones.
_WIDTH = Width.W16
_USES = (
    (Role.RESULT_ADDRESS, Extent.VECTOR, Access.WRITE),
    (Role.VECTOR_ADDRESS, Extent.VECTOR, Access.READ),
)


@dataclass(frozen=True)
class SpecialUnit:
    """A special unit as programs see it.

    Attributes:
        name: one word, used by the manual and for hardware ports.
        functions: what it computes; values are the codes in the field ``VERTICAL`` and differ from
            those of other units.
        passes: cycles per 64-bit word.
        fractions: whether FX matters.
        evaluate: function of this unit, 16-bit elements, FX -> results of the same type.
        manual: section of the manual, in Markdown.
    """

    name: str
    functions: type[IntEnum]
    passes: int
    fractions: bool
    evaluate: Callable[[Any, Array, int], Array]
    manual: str

    @property
    def rows(self) -> list[Instruction]:
        """Its instructions: ``v.`` and the name of the function."""
        return [
            Instruction(
                key=f"v.{function.name}[{_WIDTH.bits}]".lower(),
                mnemonic=f"v.{function.name}".lower(),
                width=_WIDTH,
                opcode=Opcode.SPECIAL,
                function=WIDTH.insert(_WIDTH) | VERTICAL.insert(function),
                format=Format.AB,
                uses=_USES,
                unit=Unit.VECTOR,
                special=self.name,
                work=self.name,
                passes=self.passes,
                fractions=self.fractions,
                summary=f"Element-wise {function.name.lower()}.",
                semantics=f"for j < VL: S[A + j*w] = {function.name.lower()}(S[B + j*w])",
                origin=Origin.OURS,
                optional=True,
            )
            for function in self.functions
        ]

    def function_of(self, row: Instruction) -> IntEnum:
        """The function of ``row``, one of :attr:`rows`."""
        return self.functions(VERTICAL.extract(row.function))
