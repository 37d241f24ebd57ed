"""The log of the hazards of a run (:class:`isa.timing.HazardModel`)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from isa.iss.operations import Operation, ProcessorState
from isa.iss.simulator import Observer

from .program import Span
from .table import FIELD_A, FIELD_B, FIELD_C, Instruction, Opcode, Unit
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
                return self._observed_vector(state, row, word, address, operation)
            if row.scratchpad:
                return self._observed_transfer(state, row, word, address, operation)
            if row.opcode == Opcode.DRAIN:
                return _then(operation, self.drained)
            return operation

        return observe

    def _observed_vector(
        self, state: ProcessorState, row: Instruction, word: int, pc: int, operation: Operation
    ) -> Operation:
        registers, note = state.registers, self.vector
        a, b, c = FIELD_A.extract(word), FIELD_B.extract(word), FIELD_C.extract(word)

        def observed() -> int:
            following = operation()
            result, first, second = registers[a], registers[b], registers[c]
            note(VectorOperation(row, result, first, second, state.vl, state.mr), pc)
            return following

        return observed

    def _observed_transfer(
        self, state: ProcessorState, row: Instruction, word: int, pc: int, operation: Operation
    ) -> Operation:
        assert row.width is not None
        registers, width = state.registers, row.width.bytes
        (near,) = row.scratchpad
        pad, c = near.field.extract(word), FIELD_C.extract(word)
        return _then(
            operation, lambda: self.transfer(row, registers[pad], registers[c] * width, pc)
        )


def _closeness(hazard: Hazard) -> int:
    return -(hazard.distance or 0)


def _then(operation: Operation, note: Callable[[], None]) -> Operation:
    """``operation``, and if it does not fault, ``note`` after it."""

    def observed() -> int:
        following = operation()
        note()
        return following

    return observed
