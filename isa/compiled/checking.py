"""The compiled simulator with a hazard check."""

import weakref
from collections.abc import Sequence

from isa.hazards import Hazard, HazardKind
from isa.iss.simulator import Observer
from isa.table import Instruction

from .library import FoundHazard
from .rows import CONCERNED, HAZARD_KINDS, SEEN
from .simulator import CompiledSimulator


class CheckingSimulator(CompiledSimulator):
    """:class:`CompiledSimulator` that also reports the hazards that an observer of
    :class:`isa.hazards.HazardLog` would, at lower speed.

    Parameters, attributes and exceptions: as there.
    """

    def _load(
        self, words: Sequence[int], rows: Sequence[Instruction | None], observer: Observer | None
    ) -> None:
        super()._load(words, rows, observer)
        self._log = self._library.vip_hazards_open()
        weakref.finalize(self, self._library.vip_hazards_close, self._log)
        engine = self._engine
        engine.log, engine.followed = self._log, self._program
        engine.program = marked = type(self._program).from_buffer_copy(self._program)
        for operation in marked:
            if operation.row in CONCERNED:
                operation.row = SEEN

    @property
    def hazards(self) -> list[Hazard]:
        """Those met since the launch, as :attr:`isa.hazards.HazardLog.hazards`."""
        hazards = (FoundHazard * self._library.vip_hazards_count(self._log))()
        self._library.vip_hazards_copy(self._log, hazards)
        return [self._hazard(hazard) for hazard in hazards]

    def _hazard(self, hazard: FoundHazard) -> Hazard:
        key, other_key = self._keys[hazard.pc], self._keys[hazard.other]
        assert key is not None
        assert other_key is not None
        kind = HAZARD_KINDS[hazard.what]
        timeless = kind is HazardKind.OWN_OPERAND
        return Hazard(
            pc=hazard.pc,
            key=key,
            what=kind,
            address=hazard.address,
            other=hazard.other,
            other_key=other_key,
            distance=None if timeless else hazard.distance,
            needed=None if timeless else hazard.needed,
            times=hazard.times,
        )
