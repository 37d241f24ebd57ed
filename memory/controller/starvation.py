"""How long a request may wait, and the limits that make it so."""

from memory.config import VaultConfig
from memory.timing import BURST_CLOCKS, POSTPONED_REFRESHES

__all__ = ["FORCED_DEBT", "GROUP_BURSTS", "PATIENCE_CYCLES", "starvation_bound"]

#: Cycles for which requests for its bank may overtake the oldest one of the transaction queue.
PATIENCE_CYCLES = 256
#: Bursts of one direction after which the other one gets its turn, if an open row waits for it.
GROUP_BURSTS = 16
#: Refreshes owed at which a bank stops serving even requests for its open row.
FORCED_DEBT = POSTPONED_REFRESHES // 2


def starvation_bound(config: VaultConfig) -> int:
    """Cycles within which the column command of a request that was taken is given, with the
    first-ready policy, as long as the requester takes its responses.

    It is a proof's worst case, far above what happens:

    - The head of a bank's queue needs its row closed and opened, each command behind one of every
      other bank and a burst; then the bus. There it waits for groups of both directions in turn,
      until all older requests in the vault have gone before it.
    - The oldest request of the transaction queue leaves it when it has been patient and a place in
      its bank's queue is free, which takes one head; so does every request before ours. Then our
      request waits for the heads in its bank's queue.
    - Refreshes are added to all that, those owed and those that come due meanwhile.
    """
    timing = config.timing
    turn = timing.tcl + timing.tcwl + timing.turn_clocks + timing.write_to_read
    group = 2 * (GROUP_BURSTS * max(BURST_CLOCKS, timing.tccd) + turn)
    older = config.transaction_queue + config.banks * config.command_queue
    groups = 1 + -(-older // GROUP_BURSTS)
    opening = timing.write_to_precharge + timing.trp + timing.trcd
    turns = config.banks * (4 + timing.trrd + timing.tfaw // 4) + timing.tfaw + 4 * BURST_CLOCKS
    head = opening + turns + groups * group
    without = config.transaction_queue * (PATIENCE_CYCLES + head) + config.command_queue * head
    # A refresh closes the bank and comes before everything but refreshes of other banks.
    refresh = timing.trp + timing.trfc + 2 * config.banks
    return (without + FORCED_DEBT * refresh) * timing.trefi // (timing.trefi - refresh)
