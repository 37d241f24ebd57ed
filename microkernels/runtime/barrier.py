"""Software synchronisation: full-empty words in DRAM, and a barrier built from them.

A *flag* is a 64-bit word at the start of a 32-byte DRAM column that contains nothing else. One
engine writes it; any number read it. A flag counts: it is *full* for event ``n`` once it contains
``n`` or more, so it never needs emptying and serves any number of events. An engine completes a
``memfence`` before it writes ``n``, so all its earlier stores are in memory when another engine
reads the flag.

A *barrier* uses one such flag per engine. At the ``n``-th barrier an engine writes ``n`` to its own
flag (:meth:`FlagCode.signal`), then reads all flags until each contains ``n``
(:meth:`FlagCode.gather`). An engine that runs ahead may write ``n + 1`` while the rest still wait
for ``n``; it then waits until they too have signalled ``n + 1``. The barrier is therefore correct
for any timing of the engines.

Between vaults: an engine reads flags of its own vault only. It has additional flags in the previous
and the next vault of the ring (:mod:`microkernels.runtime.ring`), one link away, for the engines
that wait there. *Point to point*: each engine of a *team* (a group of a vault's engines) writes one
such flag, and the same team of the other vault gathers them (:attr:`FlagTable.steps_before`,
:attr:`FlagTable.steps_after`). *Distributed barrier*: every engine writes one flag in each of the
three vaults and gathers the flags of all three in its own; no engine passes before those of the
neighbouring vaults have arrived. This does not stop the whole chip at once: two vaults may differ
by as many barriers as there are links between them. The barrier thus orders accesses to an engine's
own and neighbouring vaults, and kernels make no other accesses.

Cost: flags are read four at a time with overlapping latency. A flag that is not full yet is read
again on its own after :data:`PAUSE` iterations of an empty loop, so a waiting engine reads one
memory column about every 100 cycles (4 out of about 100 bus clocks). The last engine to arrive
leaves after one ``memfence`` and one round trip to memory. A lone engine reads no flag.

Flag addresses come from registers, that is, from the program's parameter block, so flags may be in
any vault; :class:`FlagTable` lays them out. The host clears them before the first launch
(:meth:`FlagTable.words`). Later launches continue counting from the engine's own flag
(:meth:`FlagCode.resume`) and need no clearing, provided that the previous launch ended on all
engines.

*Flags of data*: each engine that writes a part of some data has a flag beside them, in the vault of
the data. It counts how often the data have been written. Engines of any vault read it before they
load the data, which orders more finely than a barrier (:mod:`microkernels.nn.lstm_layout`).
"""

from dataclasses import dataclass

import numpy as np

from isa.program import Numbers, Span
from microkernels.common.builder import WIDE, KernelBuilder
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import round_up

#: Each flag has its own DRAM column, so accesses to it are not ordered with any others.
FLAG_BYTES = 32
#: Iterations of an empty loop (4 cycles each) before a flag is read again.
PAUSE = 2
#: Number of flags read at a time.
FLAG_GROUP = 4
#: Maximum events that a flag counts, over all launches since it was cleared.
_MOST_EVENTS = 1 << 18
ALWAYS_FULL = np.iinfo(np.int64).max


@dataclass(frozen=True)
class FlagTable:
    """Flags that the engines of one vault read, stored one after the other in DRAM.

    Attributes:
        base: address of the first flag; a multiple of 32.
        members: engines of the vault that take part in the barrier; at least 1.
        ring: the vault has neighbours in a ring, which have as many engines each and also take
            part.
        team: engines per team, 1..members; used only in a ring.

    Raises:
        KernelError: a value out of range.
    """

    base: int
    members: int
    ring: bool = False
    team: int = 1

    def __post_init__(self) -> None:
        CHECK.fields(self)
        if self.base < 0 or self.base % FLAG_BYTES:
            raise KernelError(f"base must be a multiple of {FLAG_BYTES}, not {self.base}")
        CHECK.at_least("members", self.members, 1)
        if not 1 <= self.team <= self.members:
            raise KernelError(f"team must be from 1 to {self.members}, not {self.team}")

    @property
    def _groups(self) -> list[int]:
        """Flags used in each range except the last, from ``base`` on. In a ring: flags that the
        previous, the next and this vault write at the barrier, then flags that teams of the
        previous and the next vault write. Otherwise: flags of this vault."""
        return [self.members] * 3 + [self.team] * 2 if self.ring else [self.members]

    def _range(self, number: int) -> tuple[int, int]:
        """First and end address of range ``number``: whole groups, as :meth:`FlagCode.gather`
        reads."""
        sizes = [-(-count // FLAG_GROUP) * FLAG_GROUP * FLAG_BYTES for count in self._groups]
        first = self.base + sum(sizes[:number])
        return first, first + sizes[number]

    @property
    def _own(self) -> tuple[int, int]:
        return self._range(2 if self.ring else 0)

    @property
    def everyone(self) -> tuple[int, int]:
        """First and end address of the flags that the barrier reads. The only engine of a vault
        does not read its own flag."""
        return self.base, self._own[self.members > 1]

    @property
    def vault(self) -> tuple[int, int]:
        """First and end address of the flags that the engines of this vault write at the barrier;
        none for its only engine."""
        return self._own[0], self._own[self.members > 1]

    @property
    def steps_before(self) -> tuple[int, int]:
        """First and end address of the flags that a team of the previous vault writes
        (``ring``)."""
        return self._range(3)

    @property
    def steps_after(self) -> tuple[int, int]:
        """First and end address of the flags that a team of the next vault writes (``ring``)."""
        return self._range(4)

    @property
    def end(self) -> int:
        """First byte after all flags."""
        return self.handover(self.members)

    def arrival(self, member: int) -> int:
        """Address of the flag that ``member`` (0..members - 1) writes at the barrier."""
        return self._own[0] + member * FLAG_BYTES

    def handover(self, member: int) -> int:
        """Address of the flag with which ``member`` hands work to one other engine of the vault."""
        return self._range(len(self._groups) - 1)[1] + member * FLAG_BYTES

    def from_before(self, member: int) -> int:
        """Address of the flag that ``member`` of the previous vault writes at the barrier."""
        return self._range(0)[0] + member * FLAG_BYTES

    def from_after(self, member: int) -> int:
        """Address of the flag that ``member`` of the next vault writes at the barrier."""
        return self._range(1)[0] + member * FLAG_BYTES

    def step_from_before(self, number: int) -> int:
        """Address of the flag that engine ``number`` (0..team - 1) of a team of the previous vault
        writes."""
        return self.steps_before[0] + number * FLAG_BYTES

    def step_from_after(self, number: int) -> int:
        """Address of the flag that engine ``number`` (0..team - 1) of a team of the next vault
        writes."""
        return self.steps_after[0] + number * FLAG_BYTES

    def words(self) -> bytes:
        """Initial flags, written by the host at :attr:`base` before the first launch: no event has
        happened.

        Flags that only fill up a group are always full.
        """
        words = np.zeros((self.end - self.base) // 8, "<i8")
        for number, count in enumerate(self._groups):
            first, end = ((address - self.base) // 8 for address in self._range(number))
            words[first:end].reshape(-1, FLAG_BYTES // 8)[count:, 0] = ALWAYS_FULL
        return words.tobytes()

    @property
    def numbers(self) -> tuple[Numbers, ...]:
        """Bounds of the flags, which suffice for 262,144 events."""

        def flags(first: int, end: int, low: int, high: int) -> list[Numbers]:
            return [Numbers(Span(at, 8), low, high) for at in range(first, end, FLAG_BYTES)]

        rings = flags(self.handover(0), self.end, 0, _MOST_EVENTS)
        for number, count in enumerate(self._groups):
            first, end = self._range(number)
            used = first + count * FLAG_BYTES
            rings += flags(first, used, 0, _MOST_EVENTS)
            rings += flags(used, end, ALWAYS_FULL, ALWAYS_FULL)
        return tuple(sorted(rings))


class FlagCode:
    """Code that signals and waits. All operands are register names.

    Parameters:
        writer: the builder to write to.
        event: contains the number of the next event; reserved for this code.
        scratch: six registers that are free where :meth:`wait_for` and :meth:`gather` are used.
        one: contains 1 in those places.
    """

    def __init__(
        self,
        writer: KernelBuilder,
        *,
        event: str,
        scratch: tuple[str, str, str, str, str, str],
        one: str,
    ) -> None:
        self._writer = writer
        self._event = event
        self._values = scratch[:FLAG_GROUP]
        self._pointer, self._count = scratch[FLAG_GROUP:]
        self._one = one

    def resume(self, own: str) -> None:
        """Set the event's number to one more than the value of the flag at ``own``, this engine's
        own."""
        w = self._writer
        w.op(f"ld.reg {WIDE}", self._event, own)
        w.op("add", self._event, self._event, self._one)

    def signal(self, flag: str, *others: str) -> None:
        """Complete all earlier accesses, then mark the event in the flag at address ``flag``.

        Parameters:
            others: addresses of more flags; the first that is 0 ends the list.
        """
        w = self._writer
        w.op("memfence")
        w.op(f"st.reg {WIDE}", flag, self._event, note="full for this event")
        if others:
            marked = w.new_label("marked")
            for other in others:
                w.op("beq", other, w.zero, marked)
                self.mark(other)
            w.label(marked)

    def wait_for(self, flag: str) -> None:
        """Wait until the flag at address ``flag`` is full for the event."""
        value = self._values[0]
        self._writer.op(f"ld.reg {WIDE}", value, flag)
        self._until_full(value, flag, 0)

    def gather(self, first: str, end: str) -> None:
        """Wait like :meth:`collect`, then count the event."""
        self.collect(first, end)
        self.count()

    def count(self) -> None:
        """Count an event that has passed: set the number of the next one."""
        self._writer.op("add", self._event, self._event, self._one)

    def mark(self, flag: str) -> None:
        """Mark the event in the flag at address ``flag``, without waiting for earlier accesses."""
        self._writer.op(f"st.reg {WIDE}", flag, self._event)

    def request(self, first: str, count: int) -> None:
        """Begin to read up to four of ``count`` flags from address ``first`` on;
        :meth:`wait_requested` waits for all. In between, ``scratch`` is not free."""
        w = self._writer
        for number, value in enumerate(self._values[:count]):
            w.op("add", self._pointer, first, number * FLAG_BYTES)
            w.op(f"ld.reg {WIDE}", value, self._pointer)

    def wait_requested(self, first: str, count: int, end: str) -> None:
        """Wait until ``count`` flags from ``first`` on, and those that fill up their groups of
        four, are full for the event. ``end``: a register that is free."""
        for number, value in enumerate(self._values[:count]):
            self._until_full(value, first, number * FLAG_BYTES)
        if count > FLAG_GROUP:
            self._writer.offset(end, first, round_up(count, FLAG_GROUP) * FLAG_BYTES)
            self._writer.offset(self._pointer, first, FLAG_GROUP * FLAG_BYTES)
            self.collect(self._pointer, end)

    def collect(self, first: str, end: str) -> None:
        """Wait until all flags from ``first`` up to ``end`` are full for the event.

        Flags come in groups of four; ``first`` = ``end``: none.
        """
        w = self._writer
        group, done = w.new_label("gather"), w.new_label("gathered")
        w.op("mov", self._pointer, first)
        w.op("beq", first, end, done, note="alone")
        w.label(group)
        for value in self._values:
            w.op(f"ld.reg {WIDE}", value, self._pointer)
            w.op("add", self._pointer, self._pointer, FLAG_BYTES)
        for number, value in enumerate(self._values):
            self._until_full(value, self._pointer, (number - FLAG_GROUP) * FLAG_BYTES)
        w.op("bne", self._pointer, end, group)
        w.label(done)

    def _until_full(self, value: str, base: str, offset: int) -> None:
        """Pause and read ``value`` again from ``base + offset`` until it is full."""
        w = self._writer
        check, full, pause = w.new_label("check"), w.new_label("full"), w.new_label("pause")
        w.label(check)
        w.op("bge", value, self._event, full)
        w.op("mov", self._count, PAUSE)
        w.label(pause)
        w.op("sub", self._count, self._count, self._one)
        w.op("bne", self._count, w.zero, pause)
        w.op("add", self._count, base, offset)
        w.op(f"ld.reg {WIDE}", value, self._count)
        w.op("jmp", check)
        w.label(full)
