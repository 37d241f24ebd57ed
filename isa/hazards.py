"""The log of the hazards of a run (:class:`isa.timing.HazardModel`)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from isa.iss.simulator import Observer, then
from isa.iss.state import Operation, ProcessorState

from .accesses import Access, accesses, vector_operation
from .program import Span
from .table import Instruction, Opcode, Unit
from .timing import Hazard, HazardKind, HazardModel, VectorOperation, own_operand


class HazardLog:
    """Collects the hazards of a run.

    Its :meth:`observer` makes a simulator show it every instruction concerned; or call
    :meth:`vector`, :meth:`transfer` and :meth:`drained` for each that is executed, in order.
    """

    def __init__(self) -> None:
        self.model = HazardModel()
        self._found: dict[tuple[int, HazardKind], Hazard] = {}

    @property
    def hazards(self) -> list[Hazard]:
        """The hazards in order of occurrence: one per instruction and kind, with the smallest
        distance."""
        return list(self._found.values())

    def _add(self, hazards: Sequence[Hazard]) -> None:
        # If one execution causes several hazards of a kind, the closest counts.
        for hazard in {entry.what: entry for entry in sorted(hazards, key=_closeness)}.values():
            at = (hazard.pc, hazard.what)
            recorded = self._found.get(at)
            if recorded is None:
                self._found[at] = hazard
                continue
            closer = _closeness(hazard) > _closeness(recorded)
            self._found[at] = replace(hazard if closer else recorded, times=recorded.times + 1)

    def drained(self) -> None:
        """A ``v.drain`` was executed."""
        self.model.drained()

    def vector(self, operation: VectorOperation, pc: int) -> None:
        """``operation`` at word ``pc`` was executed."""
        if hazards := self.model.before_vector(operation, pc):
            self._add(hazards)
        if hazards := own_operand(operation, pc):
            self._add(hazards)
        self.model.issued(operation, pc)

    def transfer(self, row: Instruction, scratchpad: int, length: int, pc: int) -> None:
        """A load or store of ``length`` bytes at ``scratchpad`` was executed; ``row`` says
        which."""
        if length:
            before = self.model.before_load if row.loads else self.model.before_store
            if hazards := before(row, Span(scratchpad, length), pc):
                self._add(hazards)

    def observer(self) -> Observer:
        """An observer for one :class:`isa.iss.simulator.Simulator`, from its launch on."""

        def observe(
            state: ProcessorState, row: Instruction, word: int, address: int, operation: Operation
        ) -> Operation:
            if row.unit is Unit.VECTOR:
                issued = vector_operation(state, row, word)
                return then(operation, lambda: self.vector(issued(), address))
            find = accesses(state, row, word)
            if row.scratchpad and find is not None:
                return then(operation, lambda: self._transfer(row, find(), address))
            if row.opcode == Opcode.DRAIN:
                return then(operation, self.drained)
            return operation

        return observe

    def _transfer(self, row: Instruction, accessed: Iterable[Access], pc: int) -> None:
        (pad,) = (access for access in accessed if access.space == "scratchpad")
        self.transfer(row, pad.start, pad.size, pc)


def _closeness(hazard: Hazard) -> int:
    return -(hazard.distance or 0)
