"""The interface of schedulers, and their common functions.

A scheduler makes two decisions per cycle: it moves a request from the transaction queue to its
bank's queue, and it selects the bank that issues its command to the DRAM. All its choices are
legal, so no policy can break a timing rule or the order of requests for one column. A policy is a
component with the members of :func:`scheduler_members`, listed in
:data:`memory.controller.policies.SCHEDULERS`; no other file names it.
"""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from memory.config import VaultConfig

from .transaction import stamp_bits


def scheduler_members(config: VaultConfig) -> dict[str, Member]:
    """Members of every scheduler, T being the transaction queue's size and B the banks.

    Members:
        eligible (in, T): entries that may go to their banks' queues in this cycle.
        row_hit (in, T): entries for the row of the last request that went to their bank.
        turnaround (in, T): entries of another direction (reading, writing) than that request.
        occupied (in, T): entries that hold a request.
        older (in, T x T): for each entry the older ones; bits of free entries are undefined.
        banks (in, T x bank_bits): for each entry the bank of its request.
        pick (out, T): the entry that goes, one of ``eligible``, or 0.
        column (in, B): banks that offer a column command, as in
            :class:`memory.controller.bank_machine.BankMachine`.
        row (in, B): banks that offer ACT, PRE or REFRESH; never together with ``column``.
        urgent (in, B): banks whose ``row`` belongs to a refresh.
        waiting (in, B): banks with a request.
        hit (in, B): banks whose request is for the open row.
        ready (in, B): of ``hit``, those whose own timers allow its column command; only with
            :attr:`memory.config.VaultConfig.timed_turns`.
        write (in, B): banks whose request is a write.
        stamps (in, B x stamp_bits): order of arrival of their requests (:func:`first_stamp`).
        issue (out, B): the bank whose command is issued, one of ``column | row``, or 0.
    """
    entries, banks = config.transaction_queue, config.banks
    return {
        "eligible": In(entries),
        "row_hit": In(entries),
        "turnaround": In(entries),
        "occupied": In(entries),
        "older": In(entries).array(entries),
        "banks": In(config.bank_bits).array(entries),
        "pick": Out(entries),
        "column": In(banks),
        "row": In(banks),
        "urgent": In(banks),
        "waiting": In(banks),
        "hit": In(banks),
        **({"ready": In(banks)} if config.timed_turns else {}),
        "write": In(banks),
        "stamps": In(stamp_bits(config)).array(banks),
        "issue": Out(banks),
    }


def oldest_of(m: Module, candidates: Value, older: list[Value], name: str) -> Signal:
    """The oldest of ``candidates`` (bits of entries), as one bit."""
    selected = Signal(len(candidates), name=name)
    m.d.comb += selected.eq(
        Cat(candidates[n] & ~(candidates & mask).any() for n, mask in enumerate(older))
    )
    return selected


def first_stamp(m: Module, candidates: Value, keys: list[Value], name: str) -> Signal:
    """The one of ``candidates`` (bits of banks) with the first stamp, as one bit.

    Parameters:
        keys: stamp of each bank. Stamps wrap: the earlier of two is the one with fewer steps to the
            other.
    """
    count = len(candidates)
    bits = len(keys[0])
    nodes: list[tuple[Value, Value, Value]] = [
        (candidates[n], keys[n], candidates & (1 << n)) for n in range(count)
    ]
    level = 0
    while len(nodes) > 1:
        pairs: list[tuple[Value, Value, Value]] = []
        for number in range(0, len(nodes), 2):
            (valid_a, key_a, bit_a), (valid_b, key_b, bit_b) = nodes[number : number + 2]
            tag = f"{name}_{level}_{number // 2}"
            key = Signal(bits, name=f"{tag}_key")
            bit = Signal(count, name=f"{tag}_bit")
            second = Signal(name=f"{tag}_second")
            # The difference of wrapping numbers is negative if its top bit is set.
            later = Signal(bits, name=f"{tag}_later")
            m.d.comb += later.eq(key_b - key_a)
            m.d.comb += second.eq(~valid_a | (valid_b & later[-1]))
            with m.If(second):
                m.d.comb += [key.eq(key_b), bit.eq(bit_b)]
            with m.Else():
                m.d.comb += [key.eq(key_a), bit.eq(bit_a)]
            pairs.append((valid_a | valid_b, key, bit))
        nodes = pairs
        level += 1
    selected = Signal(count, name=name)
    m.d.comb += selected.eq(nodes[0][2])
    return selected
