"""First-ready, first-come-first-served scheduling with reads and writes in groups."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value

from hdl.component import Component
from memory.config import VaultConfig

from .scheduler import first_stamp, oldest_of, scheduler_members
from .starvation import GROUP_BURSTS, PATIENCE_CYCLES


class FirstReady(Component):
    """Requests for an open row go first, then the oldest.

    A bank's queue gets the oldest request for the row of the bank's last request, with the same
    direction if there is one. If no bank has such a request, the oldest of all goes. Once the
    oldest of all has waited ``PATIENCE_CYCLES`` as such, no other request goes to its bank.

    The DRAM gets a command of a refresh first, then a column command, if possible of the direction
    of the previous one, then ACT or PRE; among several, the one whose request came first. After
    ``GROUP_BURSTS`` of one direction, the other is served if an open row waits for it; with the
    policy "first-ready-timed" not before the timers of that row's bank allow it, so that the data
    bus does not idle meanwhile.

    No request waits longer than :func:`memory.controller.starvation.starvation_bound`.

    Policies with other preferences derive from this one: they extend :meth:`_begin`, and override
    :meth:`_turn` and :meth:`_classes`.

    Members: :func:`memory.controller.scheduler.scheduler_members`.
    """

    def __init__(self, config: VaultConfig) -> None:
        self.config = config
        super().__init__(scheduler_members(config))

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        # Whether the data bus writes, its bursts since that changed, and the banks whose request
        # has its direction.
        self._writing = Signal(name="writing")
        self._bursts = Signal(range(GROUP_BURSTS + 1), name="count")
        self._same = Signal.like(self.column, name="same")
        patience = self._pick(m)
        self._issue(m, patience, platform)
        return m

    def _pick(self, m: Module) -> Signal:
        """Pick an entry of the transaction queue; returns how long its oldest has been the
        oldest."""
        older = list(self.older)
        oldest = oldest_of(m, self.occupied, older, "oldest")
        patience = Signal(range(PATIENCE_CYCLES + 1))
        late = Signal()
        m.d.comb += late.eq(patience == PATIENCE_CYCLES)
        with m.If((self.pick & oldest).any() | ~self.occupied.any()):
            m.d.sync += patience.eq(0)
        with m.Elif(~late):
            m.d.sync += patience.eq(patience + 1)

        bank = Signal(self.config.bank_bits)
        for number in range(len(oldest)):
            with m.If(oldest[number]):
                m.d.comb += bank.eq(self.banks[number])
        same_bank = Cat(entry == bank for entry in self.banks)
        candidates = Signal.like(self.eligible)
        preferred = Signal.like(self.eligible)
        m.d.comb += candidates.eq(
            self.eligible & (oldest | ~(same_bank & late.replicate(len(oldest))))
        )
        hits = candidates & self.row_hit
        for choice in (candidates, hits, hits & ~self.turnaround):
            with m.If(choice.any()):
                m.d.comb += preferred.eq(choice)
        m.d.comb += self.pick.eq(oldest_of(m, preferred, older, "picked"))
        return patience

    def _issue(self, m: Module, patience: Signal, platform: object) -> None:
        """Issue a command."""
        writing, count, same = self._writing, self._bursts, self._same
        m.d.comb += same.eq(Mux(writing, self.write, ~self.write))
        self._begin(m, patience, platform)
        # The other direction has priority until it has had one burst.
        switch = self._turn(m)
        candidates = Signal.like(self.column)
        for members in reversed(self._classes(switch.replicate(len(same)))):
            with m.If(members.any()):
                m.d.comb += candidates.eq(members)
        m.d.comb += self.issue.eq(first_stamp(m, candidates, list(self.stamps), "issued"))

        column = Signal()
        turnaround = Signal()
        m.d.comb += [
            column.eq((self.issue & self.column).any()),
            turnaround.eq((self.issue & ~same).any()),
        ]
        with m.If(column):
            m.d.sync += writing.eq(writing ^ turnaround)
            with m.If(turnaround):
                m.d.sync += count.eq(1)
            with m.Elif(count != GROUP_BURSTS):
                m.d.sync += count.eq(count + 1)

    def _begin(self, m: Module, patience: Signal, platform: object) -> None:
        """Add the logic that a policy needs to select the command."""

    def _turn(self, m: Module) -> Signal:
        """Whether column commands of the present direction are held back."""
        switch = Signal()
        candidates = self.ready if self.config.timed_turns else self.hit
        m.d.comb += switch.eq((self._bursts == GROUP_BURSTS) & (candidates & ~self._same).any())
        return switch

    def _classes(self, switch: Value) -> Sequence[Value]:
        """Sets of banks, the first non-empty one of which has the command.

        Parameters:
            switch: :meth:`_turn`, for each.
        """
        return (
            self.row & self.urgent,
            self.column & self._same & ~switch,
            self.column & ~self._same,
            self.row,
        )
