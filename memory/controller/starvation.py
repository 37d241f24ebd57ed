"""The bound on a request's wait, the limits it follows from, and snapshots of waiting banks."""

from amaranth.hdl import Module, Signal, Value

from memory.config import VaultConfig
from memory.timing import BURST_CLOCKS, POSTPONED_REFRESHES

#: Cycles for which requests for its bank may overtake the oldest one of the transaction queue.
PATIENCE_CYCLES = 256
#: Bursts of one direction after which the other one has priority, if an open row waits for it.
GROUP_BURSTS = 16
#: Owed refreshes at which a bank stops serving even requests for its open row.
FORCED_DEBT = POSTPONED_REFRESHES // 2
#: Cycles for which a snapshot may last before its banks count as late.
SNAPSHOT_CYCLES = 512


def starvation_bound(config: VaultConfig) -> int:
    """Maximum cycles from accepting a request to its column command, with every policy except
    "in-order", as long as the requester accepts its responses.

    The bound is a proof's worst case, far above measured waits:

    - The head of a bank's queue needs its row closed and opened, each command after one of every
      other bank and a burst; then the bus. There it waits for groups of both directions in turn,
      until all older requests in the vault have gone before it.
    - With "first-ready-timed" a group goes on, after its last burst, until the timers of a bank of
      the other direction run out. That bank gets no command meanwhile, because its request is not
      served, so they run no longer than the longest of them.
    - With "learned" the choices of the agent count for nothing from ``SNAPSHOT_CYCLES``
      after a snapshot of waiting banks until all of these are served, so a head waits for one
      snapshot, and in one, as long as with "first-ready-timed" and those cycles. That bound holds
      from whatever state the agent has left: it takes all requests that are there as older ones.
      A group may be a burst longer, as its end comes a cycle late.
    - The oldest request of the transaction queue leaves it after its patience, when its bank's
      queue has room, which takes one head. So does every earlier request. Then the request waits
      for the heads in its bank's queue.
    - Refreshes add to all of this, those owed and those that become due meanwhile.
    """
    timing = config.timing
    turnaround = timing.tcl + timing.tcwl + timing.turnaround_clocks + timing.write_to_read
    burst = max(BURST_CLOCKS, timing.tccd)
    group = 2 * (GROUP_BURSTS * burst + turnaround)
    if config.timed_turns:
        group += 2 * (max(timing.trcd, timing.tccd, timing.write_to_read) + burst)
    if config.learns:
        group += 2 * burst
    older = config.transaction_queue + config.banks * config.command_queue
    groups = 1 + -(-older // GROUP_BURSTS)
    opening = timing.write_to_precharge + timing.trp + timing.trcd
    activations = (
        config.banks * (4 + timing.trrd + timing.tfaw // 4) + timing.tfaw + 4 * BURST_CLOCKS
    )
    head = opening + activations + groups * group
    if config.learns:
        # Two cycles until the late snapshot has reached the registers of the agent's choice.
        head = 2 * (SNAPSHOT_CYCLES + 2 + head)
    without = config.transaction_queue * (PATIENCE_CYCLES + head) + config.command_queue * head
    # A refresh closes the bank and has priority over everything but refreshes of other banks.
    refresh = timing.trp + timing.trfc + 2 * config.banks
    return (without + FORCED_DEBT * refresh) * timing.trefi // (timing.trefi - refresh)


class WaitingSnapshot:
    """Marks the banks with a request; as soon as all of these have been served, marks again.

    This bounds the wait with policies that may prefer other banks.

    Parameters:
        m: module that the registers become part of, in domain ``sync``.
        waiting: banks with a request. served: banks whose column command is issued.

    Attributes:
        marked: banks of the snapshot that wait still.
        age: cycles since the snapshot, :data:`SNAPSHOT_CYCLES` at most.
        late: 1 from SNAPSHOT_CYCLES cycles after a snapshot on, until all of its banks are served;
            a cycle later than ``age``, as a register.
    """

    def __init__(self, m: Module, waiting: Value, served: Value) -> None:
        self.marked = Signal(len(waiting))
        self.age = Signal(range(SNAPSHOT_CYCLES + 1))
        self.late = Signal()
        with m.If(self.marked.any()):
            m.d.sync += self.marked.eq(self.marked & ~served)
            with m.If(self.age != SNAPSHOT_CYCLES):
                m.d.sync += self.age.eq(self.age + 1)
        with m.Else():
            m.d.sync += [self.marked.eq(waiting), self.age.eq(0)]
        m.d.sync += self.late.eq(self.marked.any() & (self.age == SNAPSHOT_CYCLES))
