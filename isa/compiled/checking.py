"""The compiled simulator with a check of hazards."""

import weakref
from collections.abc import Sequence

from isa.hazards import Hazard, HazardKind
from isa.iss.simulator import Observer
from isa.table import Instruction

from .library import FoundHazard, Operation
from .rows import HAZARD_KINDS, follow
from .simulator import CompiledSimulator

__all__ = ["CheckingSimulator"]


class CheckingSimulator(CompiledSimulator):
    """:class:`CompiledSimulator` that also finds the hazards that an observer of
    :class:`isa.hazards.HazardLog` finds. It takes longer.

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
        followed = follow(self._decoded)
        engine.program = (Operation * len(followed))(*(Operation(*each) for each in followed))

    @property
    def hazards(self) -> list[Hazard]:
        """Those met since the launch, as :attr:`isa.hazards.HazardLog.hazards`."""
        found = (FoundHazard * self._library.vip_hazards_count(self._log))()
        self._library.vip_hazards_copy(self._log, found)
        return [self._hazard(each) for each in found]

    def _hazard(self, found: FoundHazard) -> Hazard:
        key, other_key = self._keys[found.pc], self._keys[found.other]
        assert key is not None
        assert other_key is not None
        what = HAZARD_KINDS[found.what]
        timeless = what is HazardKind.OWN_OPERAND
        return Hazard(
            pc=found.pc,
            key=key,
            what=what,
            address=found.address,
            other=found.other,
            other_key=other_key,
            distance=None if timeless else found.distance,
            needed=None if timeless else found.needed,
            times=found.times,
        )
