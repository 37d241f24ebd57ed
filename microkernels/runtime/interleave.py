"""Several engines on one memory, in any order of events that the machine allows.

:class:`Together` runs instruction set simulators that share a memory, one instruction at a time; a
*schedule* chooses the engine. Stores reach the shared memory late and in any order, as on the
machine: only one engine's accesses to the same 32-byte column stay in order, loads included, and
``memfence`` and ``halt`` wait for all (docs/decisions/machine.md). A program that lacks a fence or
a barrier therefore gives wrong results under some schedule and seed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from isa.hazards import HazardLog
from isa.image import DramImage
from isa.iss.simulator import Simulator, every
from isa.iss.state import Operation, ProcessorState
from isa.program import Program
from isa.run import EngineEnd
from isa.table import Instruction
from microkernels.common.feature_map import COLUMN_BYTES

from .ring import ONE_ENGINE, ChipEngines

#: Probability that a store becomes visible when its engine loads.
_LET_GO = 0.1
#: Most stores that an engine's later instructions may overtake.
_LATE_STORES = 8
_COMPLETING = ("memfence", "halt")

#: Chooses the next engine among those (at least one) that have not ended.
Schedule = Callable[[Sequence[int]], int]


class _LateStores(DramImage):
    """One engine's view of a memory, in which its stores are delayed."""

    def __init__(
        self,
        shared: DramImage,
        rng: np.random.Generator,
        links: Callable[[int], int],
    ) -> None:
        # Only the base class's reading and writing are used, and both are redirected.
        self.size = shared.size
        self._shared = shared
        self._rng = rng
        self._links = links
        self._waiting: list[tuple[int, bytes]] = []
        self.traffic: Counter[int] = Counter()

    def read(self, address: int, n: int) -> bytes:
        """Read the shared memory, after completing this engine's stores to the same columns."""
        self._complete(address, n)
        self.traffic[self._links(address)] += n
        # No store is delayed forever, even if its engine only waits.
        if self._waiting and self._rng.random() < _LET_GO:
            self._complete(self._waiting[int(self._rng.integers(len(self._waiting)))][0], 1)
        return self._shared.read(address, n)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Delay the store, completing older ones while too many are delayed."""
        view = bytes(data)
        # A store outside the memory fails at once.
        self._shared.read(address, len(view))
        self.traffic[self._links(address)] += len(view)
        while view:
            size = min(len(view), COLUMN_BYTES - address % COLUMN_BYTES)
            self._waiting.append((address, view[:size]))
            address, view = address + size, view[size:]
        while len(self._waiting) > _LATE_STORES:
            self._complete(self._waiting[int(self._rng.integers(len(self._waiting)))][0], 1)

    def observe(
        self, state: ProcessorState, row: Instruction, word: int, pc: int, operation: Operation
    ) -> Operation:
        """The observer of a simulator by which instructions that wait for all stores do so."""
        del state, word, pc

        def completed() -> int:
            self._complete_all()
            return operation()

        return completed if row.key in _COMPLETING else operation

    def _complete_all(self) -> None:
        """Complete all stores, in any order."""
        while self._waiting:
            self._complete(self._waiting[int(self._rng.integers(len(self._waiting)))][0], 1)

    def _complete(self, address: int, n: int) -> None:
        """Complete, in order, the stores to the columns of the ``n`` bytes at ``address``."""
        first, last = address // COLUMN_BYTES, (address + n - 1) // COLUMN_BYTES
        waiting = []
        for where, data in self._waiting:
            if first <= where // COLUMN_BYTES <= last:
                self._shared.write(where, data)
            else:
                waiting.append((where, data))
        self._waiting = waiting


class Together:
    """The engines of a vault or of a chip, launched with one program.

    Engines are numbered vault by vault: engine ``n`` is in vault ``n // members``, slot
    ``n % members``.

    Parameters:
        program: executed by all engines.
        memory: shared by all engines, at the chip's addresses.
        members: engines per vault; at least 1.
        ring: of vaults.
        parameters: the start register of that name.
        seed: determines the order in which stores become visible.
        instructions: keys of the instructions that the engines have; None: all.

    Attributes:
        hazards: of each engine.
    """

    def __init__(
        self,
        program: Program,
        memory: DramImage,
        *,
        members: int,
        ring: ChipEngines = ONE_ENGINE,
        parameters: int = 0,
        seed: int = 0,
        instructions: frozenset[str] | None = None,
    ) -> None:
        rng = np.random.default_rng(seed)
        count = members * ring.vaults
        self.hazards = [HazardLog() for _ in range(count)]
        self._views = []
        self._members = []
        self._steps = [0] * count
        for index, log in enumerate(self.hazards):
            vault, slot = divmod(index, members)
            links = partial(_links, ring, vault)
            view = _LateStores(memory, rng, links)
            simulator = Simulator(
                program,
                view,
                pe_index=index,
                vault=vault,
                slot=slot,
                pe_count=count,
                parameters=parameters,
                instructions=instructions,
                observer=every(log.observer(), view.observe),
            )
            self._views.append(view)
            self._members.append(simulator)

    def run(self, schedule: Schedule, *, limit: int = 1 << 22) -> list[EngineEnd]:
        """Run all engines to the end, or until ``limit`` instructions are done. Returns outcomes by
        engine."""
        outcomes: list[EngineEnd | None] = [None] * len(self._members)
        alive = list(range(len(self._members)))
        for _ in range(limit):
            member = schedule(alive)
            self._steps[member] += 1
            outcomes[member] = outcome = self._members[member].step()
            if outcome.state != "running":
                alive.remove(member)
                if not alive:
                    break
        return [
            outcome or member.run(0)
            for outcome, member in zip(outcomes, self._members, strict=True)
        ]

    def executed(self, member: int) -> Counter[str]:
        """How often engine ``member`` has executed each instruction, by its key."""
        return self._members[member].executed

    @property
    def traffic(self) -> Counter[int]:
        """Bytes that all engines have read and written so far, by number of links to the bytes'
        vault."""
        return sum((view.traffic for view in self._views), Counter())

    def in_step(self, alive: Sequence[int]) -> int:
        """Schedule: the engine that has executed the fewest instructions."""
        return min(alive, key=lambda member: self._steps[member])


def _links(ring: ChipEngines, vault: int, address: int) -> int:
    """Links from ``vault`` to the vault of ``address``."""
    return ring.links(vault, ring.vault_of(address))
