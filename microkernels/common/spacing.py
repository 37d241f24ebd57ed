"""Which vector instructions of a straight run need a ``v.drain`` before them."""

from collections.abc import Sequence
from typing import NamedTuple

from isa.hazards import HazardModel
from isa.table import BY_KEY, Instruction
from isa.vector_operation import VectorOperation

__all__ = ["Spacing", "Span"]

#: Stands for every instruction that takes a cycle a word.
_PLAIN = BY_KEY["v.v.add[8]"]


class Span(NamedTuple):
    """Bytes of the scratchpad, counted from any fixed place."""

    place: int
    length: int


class Spacing:
    """Follows a straight run of element-wise instructions with a :class:`isa.hazards.HazardModel`.

    It begins with nothing on its way: after a ``v.drain``, or at the start of the program.
    """

    def __init__(self) -> None:
        self._model = HazardModel()

    def needs_drain(
        self, reads: Sequence[Span], result: Span, *, row: Instruction = _PLAIN
    ) -> bool:
        """Whether the run's next instruction comes too early without a ``v.drain`` before it. It
        counts as issued, with the drain if it needs one.

        Parameters:
            reads: its operands; a single element counts as read with the first word.
            result: what it writes.
            row: the instruction, or one that takes as many cycles a word
                (:attr:`isa.table.Instruction.passes`).
        """
        assert row.width is not None
        size = row.width.bytes

        def reading(span: Span) -> VectorOperation:
            length = -(-span.length // size)
            return VectorOperation(row, result.place, span.place, span.place, length, 1)

        drain = any(self._model.before_vector(reading(span)) for span in reads)
        if drain:
            self._model.drained()
        made = VectorOperation(row, result.place, 0, 0, -(-result.length // size), 1)
        self._model.issued(made)
        return drain
