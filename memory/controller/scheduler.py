"""The interface of schedulers, and what they share.

A scheduler decides twice a cycle: which request goes from the transaction queue to the queue of its
bank, and which bank gives its command to the DRAM. It is offered legal choices only, so that no
policy can break a timing rule or the order of requests for one column. A policy is a component with
the members of :func:`scheduler_members`, listed in :data:`memory.controller.policies.SCHEDULERS`;
nothing else knows of it.
"""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from memory.config import VaultConfig

from .transaction import stamp_bits

__all__ = ["first_stamp", "oldest_of", "scheduler_members"]


def scheduler_members(config: VaultConfig) -> dict[str, Member]:
    """Members of every scheduler, T being the transaction queue's size and B the banks.

    Members:
        eligible: in, T bits; entries that may go to their banks' queues now.
        row_hit: in, T bits; entries for the row that their bank was last given a request for.
        turn: in, T bits; entries of another direction (reading, writing) than that request.
        occupied: in, T bits; entries that hold a request.
        older: in, T x T bits; for each entry the older ones (bits of free entries mean nothing).
        banks: in, T bank numbers.
        pick: out, T bits; the entry that goes, one of ``eligible``, or 0.
        column, row, urgent: in, B bits; what each bank offers: see
            :class:`memory.controller.bank_machine.BankMachine`. A bank offers one of ``column`` and
            ``row``.
        waiting, hit: in, B bits; the bank has a request, its row is open.
        write: in, B bits; that request is a write.
        stamps: in, B stamps; its place in the order of arrival (:func:`first_stamp` compares).
        issue: out, B bits; the bank whose command is given, one of ``column | row``, or 0.
    """
    entries, banks = config.transaction_queue, config.banks
    return {
        "eligible": In(entries),
        "row_hit": In(entries),
        "turn": In(entries),
        "occupied": In(entries),
        "older": In(entries).array(entries),
        "banks": In(config.bank_bits).array(entries),
        "pick": Out(entries),
        "column": In(banks),
        "row": In(banks),
        "urgent": In(banks),
        "waiting": In(banks),
        "hit": In(banks),
        "write": In(banks),
        "stamps": In(stamp_bits(config)).array(banks),
        "issue": Out(banks),
    }


def oldest_of(m: Module, candidates: Value, older: list[Value], name: str) -> Signal:
    """The one of ``candidates`` (bits of entries) that has no older one among them, as one bit."""
    found = Signal(len(candidates), name=name)
    m.d.comb += found.eq(
        Cat(candidates[n] & ~(candidates & mask).any() for n, mask in enumerate(older))
    )
    return found


def first_stamp(m: Module, candidates: Value, keys: list[Value], name: str) -> Signal:
    """The one of ``candidates`` (bits of banks) with the first key, as one bit.

    Parameters:
        keys: for each bank its stamp; of two, that from which fewer steps lead to the other is the
            first, as stamps wrap.
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
    found = Signal(count, name=name)
    m.d.comb += found.eq(nodes[0][2])
    return found
