"""A barrier of all engines of a chip, of full-empty words (:mod:`microkernels.runtime.barrier`).

An engine signals its arrival in its own vault. The engine in slot 0, the vault's *leader*, gathers
the arrivals. Then the leaders meet in rounds (a dissemination barrier): in round ``r`` the leader
of vault ``v`` marks a flag in vault ``v + 2**r`` (counted around all vaults) and waits until its
own flag of the round is full. After all rounds it has heard, directly or by others, of every
vault, and marks a flag that releases the engines of its own.

An engine completes its stores before it signals, and goes on only after every engine has
signalled. So what any engine stored before the barrier is seen by all engines after it.

Flags count barriers, so they are never emptied. A leader that is ahead may mark a flag for the next
barrier before its owner has passed this one: the flag then holds a larger number, which is full for
this one too. A flag has one writer, and every engine reads flags of its own vault alone.

Cost: a round is a store to another vault and the read that finds it there; ``log2`` of the vaults,
rounded up, are needed.
"""

from dataclasses import dataclass, field

from microkernels.common.builder import KernelBuilder
from microkernels.common.errors import CHECK, KernelError

from .barrier import FLAG_BYTES, FlagCode, FlagTable
from .ring import VaultRing

__all__ = ["ChipBarrierCode", "ChipFlags"]


@dataclass(frozen=True)
class ChipFlags:
    """Flags of the barrier, at the same offset in each vault.

    Attributes:
        base: offset of the first; a multiple of 32.
        members: engines of each vault that take part, at least 1.
        ring: of the vaults; the default is one vault.

    Raises:
        KernelError: a value outside its range.
    """

    base: int
    members: int
    ring: VaultRing = field(default_factory=VaultRing)

    def __post_init__(self) -> None:
        CHECK.fields(self)
        if self.base < 0 or self.base % FLAG_BYTES:
            raise KernelError(f"base must be a multiple of {FLAG_BYTES}, not {self.base}")
        CHECK.at_least("members", self.members, 1)

    @property
    def rounds(self) -> int:
        """Rounds in which the leaders meet."""
        return (self.ring.vaults - 1).bit_length()

    @property
    def words(self) -> int:
        """Words of :meth:`parameters`."""
        return 5 + 2 * self.rounds

    def _arrivals(self, vault: int) -> FlagTable:
        return FlagTable(base=self.ring.address(vault, self.base), members=self.members)

    def _round(self, vault: int, number: int) -> int:
        """Address of the flag of ``vault`` for round ``number``; after the last: its release."""
        return self._arrivals(vault).end + number * FLAG_BYTES

    @property
    def end(self) -> int:
        """First offset after all flags."""
        return self._round(0, self.rounds + 1) - self.ring.address(0, 0)

    def contents(self) -> bytes:
        """Initial flags of a vault, to be written at :attr:`base` before the first launch: no
        barrier has been passed."""
        arrivals = self._arrivals(0).words()
        return arrivals + bytes(self.end - self.base - len(arrivals))

    def parameters(self, vault: int, member: int) -> list[int]:
        """Words from which an engine's program knows its flags: its arrival, the release of its
        vault, first and end of the arrivals that it gathers, 1 for the leader, then for each round
        the flag that it marks and the one that it waits for."""
        arrivals = self._arrivals(vault)
        leads = member == 0
        first, end = arrivals.everyone if leads else (0, 0)
        words = [arrivals.arrival(member), self._round(vault, self.rounds), first, end, int(leads)]
        for number in range(self.rounds):
            other = (vault + (1 << number)) % self.ring.vaults
            words += [self._round(other, number), self._round(vault, number)]
        return words


class ChipBarrierCode:
    """Code of the barrier.

    Parameters:
        writer: takes the text.
        flags: signals and waits; its event is reserved for this code.
        rounds: of :class:`ChipFlags`.
        table: register with the address of the words of :meth:`ChipFlags.parameters`.
        scratch: three registers that are free wherever :meth:`wait` is used, beside those of
            ``flags``.
    """

    def __init__(
        self,
        writer: KernelBuilder,
        *,
        flags: FlagCode,
        rounds: int,
        table: str,
        scratch: tuple[str, str, str],
    ) -> None:
        self._writer = writer
        self._flags = flags
        self._rounds = rounds
        self._table = table
        self._pointer, self._first, self._second = scratch

    def resume(self) -> None:
        """Set the event's number; before the first :meth:`wait` of a launch."""
        self._writer.op("mov", self._pointer, self._table)
        self._writer.read(self._first, self._pointer)
        self._flags.resume(self._first)

    def wait(self) -> None:
        """Wait until every engine of the chip is here."""
        w, flags = self._writer, self._flags
        follows, done = w.new_label("follows"), w.new_label("together")
        w.op("mov", self._pointer, self._table)
        w.read(self._first, self._pointer)
        flags.signal(self._first)
        w.op("add", self._pointer, self._pointer, 8)
        w.read(self._first, self._pointer)
        w.read(self._second, self._pointer)
        flags.collect(self._first, self._second)
        w.read(self._first, self._pointer)
        w.op("beq", self._first, w.zero, follows)
        if self._rounds:
            again = w.new_label("round")
            w.op("li", self._second, self._rounds)
            w.label(again)
            w.read(self._first, self._pointer)
            flags.mark(self._first)
            w.read(self._first, self._pointer)
            flags.wait_for(self._first)
            w.op("sub", self._second, self._second, 1)
            w.op("bne", self._second, w.zero, again)
        w.op("add", self._pointer, self._table, 8)
        w.read(self._first, self._pointer)
        flags.mark(self._first)
        w.op("jmp", done)
        w.label(follows)
        w.op("add", self._pointer, self._table, 8)
        w.read(self._first, self._pointer)
        flags.wait_for(self._first)
        w.label(done)
        flags.count()
