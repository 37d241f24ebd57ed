"""Several PEs on one memory, in any order of events that the machine allows.

:class:`Together` runs instruction set simulators that share a memory, one instruction of one PE
after the other, the PE chosen by a *schedule*. Stores reach the shared memory late and in any
order, as on the machine: only those of one PE to the same 32-byte column stay in order, also with
its loads, and ``memfence`` and ``halt`` wait for all (docs/decisions/machine/memory_order.md). A
program that lacks a fence or a barrier so gives wrong results under some schedule and seed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from isa.image import DramImage
from isa.iss.simulator import Outcome, Simulator
from isa.program import Program
from microkernels.common.schedule import ScheduleModel, Watched

from .ring import VaultRing

__all__ = ["Schedule", "Together", "in_bursts", "one_behind"]

_COLUMN_BYTES = 32
#: Probability that a store becomes visible while its PE loads.
_LET_GO = 0.1
_COMPLETING = ("memfence", "halt")

#: Chooses the PE that goes next among those (at least one) that have not ended.
Schedule = Callable[[Sequence[int]], int]


class _LateStores(DramImage):
    """One PE's view of a memory: what it stores is kept back for a while."""

    def __init__(
        self,
        shared: DramImage,
        rng: np.random.Generator,
        capacity: int,
        links: Callable[[int], int],
    ) -> None:
        # Nothing of the base class is needed but its reading and writing, which go elsewhere.
        self.size = shared.size
        self._shared = shared
        self._rng = rng
        self._capacity = capacity
        self._links = links
        self._waiting: list[tuple[int, bytes]] = []
        self.traffic: Counter[int] = Counter()

    def read(self, address: int, n: int) -> bytes:
        """As the shared memory's, behind this PE's own stores to the columns concerned."""
        self._complete(address, n)
        self.traffic[self._links(address)] += n
        # None is kept back for ever, also not by a PE that only waits.
        if self._waiting and self._rng.random() < _LET_GO:
            self._complete(self._waiting[int(self._rng.integers(len(self._waiting)))][0], 1)
        return self._shared.read(address, n)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Keep the store back, and let go others while there are too many."""
        view = bytes(data)
        # Outside the memory it is refused at once.
        self._shared.read(address, len(view))
        self.traffic[self._links(address)] += len(view)
        while view:
            size = min(len(view), _COLUMN_BYTES - address % _COLUMN_BYTES)
            self._waiting.append((address, view[:size]))
            address, view = address + size, view[size:]
        while len(self._waiting) > self._capacity:
            self._complete(self._waiting[int(self._rng.integers(len(self._waiting)))][0], 1)

    def complete(self) -> None:
        """Let go all stores, in any order."""
        while self._waiting:
            self._complete(self._waiting[int(self._rng.integers(len(self._waiting)))][0], 1)

    def _complete(self, address: int, n: int) -> None:
        """Let go the stores to the columns that hold ``n`` bytes from ``address`` on, in order."""
        first, last = address // _COLUMN_BYTES, (address + n - 1) // _COLUMN_BYTES
        held = []
        for where, data in self._waiting:
            if first <= where // _COLUMN_BYTES <= last:
                self._shared.write(where, data)
            else:
                held.append((where, data))
        self._waiting = held


class Together:
    """The PEs of a vault or of a chip, launched with one program.

    They are numbered vault by vault: PE ``n`` is in vault ``n // members``, slot ``n % members``.

    Parameters:
        program: what all execute.
        memory: what they share, at the chip's addresses.
        members: PEs of each vault; at least 1.
        ring: of the vaults. None: there is one.
        parameters: the start register of that name.
        seed: of the order in which stores become visible.
        late_stores: most stores that a PE's later instructions overtake; 0: none.
        instructions: keys of those that the PEs have; None: all.

    Attributes:
        models: of each PE, its hazards and an estimate of its cycles, which makes no difference
            between vaults.
    """

    def __init__(
        self,
        program: Program,
        memory: DramImage,
        *,
        members: int,
        ring: VaultRing | None = None,
        parameters: int = 0,
        seed: int = 0,
        late_stores: int = 8,
        instructions: frozenset[str] | None = None,
    ) -> None:
        rng = np.random.default_rng(seed)
        ring = ring or VaultRing()
        count = members * ring.vaults
        self.models = [ScheduleModel() for _ in range(count)]
        self._views = []
        self._members = []
        for index, model in enumerate(self.models):
            vault, slot = divmod(index, members)
            links = partial(_links, ring, vault)
            view = _LateStores(memory, rng, late_stores, links)
            simulator = Simulator(
                program,
                view,
                pe_index=index,
                vault=vault,
                slot=slot,
                pe_count=count,
                parameters=parameters,
                instructions=instructions,
            )
            self._views.append(view)
            self._members.append(Watched(program, simulator, model))

    def run(self, schedule: Schedule, *, limit: int = 1 << 22) -> list[Outcome]:
        """Run all to their ends, or until ``limit`` instructions are done; outcomes by PE."""
        outcomes: list[Outcome | None] = [None] * len(self._members)
        alive = list(range(len(self._members)))
        for _ in range(limit):
            member = schedule(alive)
            watched = self._members[member]
            instruction = watched.instruction
            if instruction is not None and instruction.key in _COMPLETING:
                self._views[member].complete()
            outcomes[member] = outcome = watched.step()
            if outcome.state != "limit":
                alive.remove(member)
                if not alive:
                    break
        return [
            outcome or watched.simulator.run(0)
            for outcome, watched in zip(outcomes, self._members, strict=True)
        ]

    def executed(self, member: int) -> Counter[str]:
        """How often PE ``member`` has executed each instruction, by its key."""
        return self._members[member].simulator.executed

    @property
    def traffic(self) -> Counter[int]:
        """Bytes that all PEs have read and written so far, by links to the vault that has them."""
        return sum((view.traffic for view in self._views), Counter())

    def in_time(self, alive: Sequence[int]) -> int:
        """Schedule: the PE whose estimated time is least, so that estimates hold for all."""
        return min(alive, key=lambda member: self.models[member].cycles)


def _links(ring: VaultRing, vault: int, address: int) -> int:
    """Links from ``vault`` to the one that has ``address``."""
    return ring.links(vault, ring.vault_of(address))


def in_bursts(seed: int, longest: int) -> Schedule:
    """Schedule: a random PE for a random number (1..``longest``) of instructions, and again."""
    rng = np.random.default_rng(seed)
    current = [0, 0]

    def choose(alive: Sequence[int]) -> int:
        if not current[1] or current[0] not in alive:
            current[:] = [int(rng.choice(alive)), int(rng.integers(1, longest, endpoint=True))]
        current[1] -= 1
        return current[0]

    return choose


def one_behind(slow: int, handicap: int) -> Schedule:
    """Schedule: the PEs in turns, but ``slow`` gets only one turn in ``handicap`` instructions."""
    turn = [0]

    def choose(alive: Sequence[int]) -> int:
        turn[0] += 1
        others = [member for member in alive if member != slow]
        if slow in alive and (not others or turn[0] % handicap == 0):
            return slow
        return others[turn[0] % len(others)]

    return choose
