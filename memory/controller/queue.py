"""Requests waiting for a place in their bank's queue."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Array, Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.priority import index_of
from memory.config import VaultConfig

from .transaction import transaction


class TransactionQueue(Component):
    """Up to ``transaction_queue`` requests, of which a scheduler picks one a cycle.

    A request can be picked in the cycle after its arrival. Requests for one column leave in the
    order of their arrival, whatever the scheduler picks: only the first of them is eligible.

    Members (T: the number of entries; one bit for each entry unless stated):
        input (in, stream of :func:`memory.controller.transaction.transaction`): requests.
        bank_ready (in, banks): banks whose queue has room.
        eligible (out, T): entries that may be picked in this cycle.
        row_hit (out, T): entries for the row of the last request that went to their bank.
        turnaround (out, T): entries of another direction (reading, writing) than that request.
        occupied (out, T): entries that hold a request.
        older (out, T x T): for each entry the entries with older requests; bits of free entries
            are undefined.
        banks (out, T x bank_bits): for each entry the bank of its request.
        pick (in, T): the entry picked, one of ``eligible``, or 0.
        picked (out, :func:`memory.controller.transaction.transaction`): the request picked; valid
            while ``pick`` is not 0.
    """

    def __init__(self, config: VaultConfig) -> None:
        self.config = config
        size = config.transaction_queue
        super().__init__(
            {
                "input": In(stream.Signature(transaction(config))),
                "bank_ready": In(config.banks),
                "eligible": Out(size),
                "row_hit": Out(size),
                "turnaround": Out(size),
                "occupied": Out(size),
                "older": Out(size).array(size),
                "banks": Out(config.bank_bits).array(size),
                "pick": In(size),
                "picked": Out(transaction(config)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        size = config.transaction_queue
        layout = transaction(config)
        new: Any = self.input.payload
        picked: Any = self.picked
        entries: list[Any] = [Signal(layout, name=f"entry_{number}") for number in range(size)]

        push = Signal()
        target = Signal(size)
        remaining = Signal(size)
        free = Signal(size)
        m.d.comb += [
            free.eq(~self.occupied),
            self.input.ready.eq(free.any()),
            push.eq(self.input.valid & self.input.ready),
            target.eq(Mux(push, free & -free, 0)),
            remaining.eq(self.occupied & ~self.pick),
            picked.eq(
                reduce(
                    or_, (Mux(self.pick[n], entry.as_value(), 0) for n, entry in enumerate(entries))
                )
            ),
        ]
        m.d.sync += self.occupied.eq(remaining | target)
        for number, entry in enumerate(entries):
            m.d.comb += self.banks[number].eq(entry.bank)
            with m.If(target[number]):
                m.d.sync += [entry.eq(new), self.older[number].eq(remaining)]
            with m.Else():
                m.d.sync += self.older[number].eq(self.older[number] & ~target)

        chained = self._chain(m, entries, target, push)
        self._compare(m, entries, target)
        target_ready = Cat(self.bank_ready.bit_select(entry.bank, 1) for entry in entries)
        m.d.comb += self.eligible.eq(self.occupied & ~chained & target_ready)
        return m

    def _chain(self, m: Module, entries: list[Any], target: Signal, push: Signal) -> Signal:
        """Chains of requests for one column: each waits for the one before it. The result has a bit
        for each entry that waits."""
        size = len(entries)
        bits = (size - 1).bit_length()
        new: Any = self.input.payload
        chained = Signal(size)
        newest = Signal(size)
        predecessor = Signal(size)
        picked_number = Signal(bits)
        new_place = Cat(new.bank, new.entry.row, new.entry.column)
        m.d.comb += [
            predecessor.eq(
                Cat(
                    Cat(entry.bank, entry.entry.row, entry.entry.column) == new_place
                    for entry in entries
                )
                & self.occupied
                & newest
            ),
            picked_number.eq(index_of(self.pick)),
        ]
        released = []
        for number in range(size):
            previous = Signal(bits, name=f"previous_{number}")
            released.append(self.pick.any() & (previous == picked_number))
            with m.If(target[number]):
                m.d.sync += previous.eq(index_of(predecessor))
        input_chained = (predecessor & ~self.pick).any()
        m.d.sync += [
            chained.eq(
                (target & input_chained.replicate(size)) | (chained & ~Cat(released) & ~target)
            ),
            newest.eq((newest & ~Mux(push, predecessor, 0)) | target),
        ]
        return chained

    def _compare(self, m: Module, entries: list[Any], target: Signal) -> None:
        """Compare each entry with the last request that went to its bank: its row and direction."""
        config = self.config
        new: Any = self.input.payload
        picked: Any = self.picked
        rows = Array(Signal(config.row_bits, name=f"row_{bank}") for bank in range(config.banks))
        writes = Signal(config.banks)
        pick_valid = Signal()
        row = Signal(config.row_bits)
        write = Signal()
        m.d.comb += [
            pick_valid.eq(self.pick.any()),
            row.eq(rows[new.bank]),
            write.eq(writes.bit_select(new.bank, 1)),
        ]
        with m.If(pick_valid):
            m.d.sync += rows[picked.bank].eq(picked.entry.row)
            m.d.sync += writes.bit_select(picked.bank, 1).eq(picked.entry.write)
        with m.If(pick_valid & (picked.bank == new.bank)):
            m.d.comb += [row.eq(picked.entry.row), write.eq(picked.entry.write)]
        for number, entry in enumerate(entries):
            with m.If(target[number]):
                m.d.sync += self.row_hit[number].eq(new.entry.row == row)
                m.d.sync += self.turnaround[number].eq(new.entry.write != write)
            with m.Elif(pick_valid & (entry.bank == picked.bank)):
                m.d.sync += self.row_hit[number].eq(entry.entry.row == picked.entry.row)
                m.d.sync += self.turnaround[number].eq(entry.entry.write != picked.entry.write)
