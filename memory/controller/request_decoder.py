"""The controller's request decoder: turns request beats into transactions."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.ports import COLUMN_BYTES, COLUMN_WORDS, WORD_BITS, memory_request
from hdl.sram import SramWritePort
from memory.address_map import slice_address
from memory.config import VaultConfig

from .transaction import ARRIVAL_BITS, slot_bits, transaction

#: Bits of a word in the store of write data: the word and its strobes.
STORE_WIDTH = WORD_BITS + WORD_BITS // 8

_WORD_LOW = (WORD_BITS // 8 - 1).bit_length()
_WORD_HIGH = (COLUMN_BYTES - 1).bit_length()


def store_address_bits(config: VaultConfig) -> int:
    """Bits of an address of the store of write data: write slot, then word of the column."""
    return slot_bits(config) + (COLUMN_WORDS - 1).bit_length()


class RequestDecoder(Component):
    """Makes transactions of requests, a beat a cycle.

    A read becomes a transaction in the cycle of its beat, a write in that of its last beat. The
    words of a write go to a slot of the store as they arrive.

    Members:
        request (in, stream of :func:`hdl.ports.memory_request`): beats of requests.
        transaction (out, stream of :func:`memory.controller.transaction.transaction`): in order.
        store (out, :class:`hdl.sram.SramWritePort`): write port of the store of write data; words
            are data, then strobes.
        freed (in, 1): a write slot is free again.
        freed_slot (in, slot_bits): its number.
        arrival (in, ARRIVAL_BITS): time, stored with a request that arrives in this cycle.
        rejected (out, stream of tags): requests outside the memory, to be answered with an error.
    """

    def __init__(self, config: VaultConfig) -> None:
        self.config = config
        super().__init__(
            {
                "request": In(
                    stream.Signature(memory_request(config.request_address_bits, config.tag_bits))
                ),
                "transaction": Out(stream.Signature(transaction(config))),
                "store": Out(SramWritePort(STORE_WIDTH, store_address_bits(config))),
                "freed": In(1),
                "freed_slot": In(slot_bits(config)),
                "arrival": In(ARRIVAL_BITS),
                "rejected": Out(stream.Signature(config.tag_bits)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        request = self.request.payload
        outside = Signal()
        if config.request_address_bits > config.address_bits:
            m.d.comb += outside.eq(request.address[config.address_bits :].any())

        slot, slot_valid, slot_used = self._slots(m)
        word = request.address[_WORD_LOW:_WORD_HIGH]
        in_write = Signal()
        write_first = Signal.like(word)
        first = Signal.like(word)
        accepted = Signal()
        ends = Signal()
        m.d.comb += [
            first.eq(Mux(in_write, write_first, word)),
            ends.eq(self.request.valid & request.last & (~request.write | slot_valid)),
            self.transaction.valid.eq(ends & ~outside),
            self.rejected.valid.eq(ends & outside),
            self.rejected.payload.eq(request.tag),
            self.request.ready.eq(
                Mux(
                    request.last,
                    Mux(outside, self.rejected.ready, self.transaction.ready)
                    & (~request.write | slot_valid),
                    slot_valid,
                )
            ),
            accepted.eq(self.request.valid & self.request.ready),
            slot_used.eq(accepted & request.write & request.last & ~outside),
            self.store.enable.eq(accepted & request.write),
            self.store.address.eq(Cat(word, slot)),
            self.store.data.eq(Cat(request.data, request.strobe)),
        ]
        with m.If(accepted):
            m.d.sync += in_write.eq(~request.last)
        with m.If(accepted & ~in_write):
            m.d.sync += write_first.eq(word)

        dram_address = slice_address(config, request.address)
        output: Any = self.transaction.payload
        entry = output.entry
        m.d.comb += [
            output.bank.eq(dram_address.bank),
            entry.row.eq(dram_address.row),
            entry.column.eq(dram_address.column),
            entry.write.eq(request.write),
            entry.tag.eq(request.tag),
            entry.words.first.eq(first),
            entry.words.last.eq(Mux(request.write, word, word + request.words)),
            entry.slot.eq(slot),
            entry.arrival.eq(self.arrival),
        ]
        stamp = Signal.like(entry.stamp)
        m.d.comb += entry.stamp.eq(stamp)
        with m.If(self.transaction.valid & self.transaction.ready):
            m.d.sync += stamp.eq(stamp + 1)
        return m

    def _slots(self, m: Module) -> tuple[Value, Value, Signal]:
        """The reserved write slot, its ``valid``, and the signal that uses it."""
        count = self.config.write_slots
        free = Signal(count, init=(1 << count) - 1)
        slot = Signal(slot_bits(self.config))
        slot_valid = Signal()
        used = Signal()
        lowest = Signal(count)
        lowest_number = Signal.like(slot)
        reserve = Signal()
        freed_slots = Signal(count)
        m.d.comb += [
            lowest.eq(free & -free),
            reserve.eq((~slot_valid | used) & free.any()),
            # While no slot is freed, its number may come from memory that was never written.
            freed_slots.eq(Mux(self.freed, 1 << self.freed_slot, 0)),
        ]
        for bit in range(len(slot)):
            mask = sum(1 << number for number in range(count) if number >> bit & 1)
            m.d.comb += lowest_number[bit].eq((lowest & mask).any())
        m.d.sync += free.eq((free & ~Mux(reserve, lowest, 0)) | freed_slots)
        with m.If(reserve):
            m.d.sync += [slot.eq(lowest_number), slot_valid.eq(1)]
        with m.Elif(used):
            m.d.sync += slot_valid.eq(0)
        return slot, slot_valid, used
