"""Write data from WRITE to the data bus."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import COLUMN_WORDS, WORD_BITS
from hdl.sram import Sram, SramWritePort
from memory.config import VaultConfig
from memory.fifo import Fifo
from memory.timing import BURST_CLOCKS

from .request_decoder import STORE_WIDTH, store_address_bits
from .transaction import slot_bits, word_range


def pending_writes(config: VaultConfig) -> int:
    """Room for the WRITEs in flight, and one being sent."""
    depth = config.timing.tcwl // BURST_CLOCKS + 2
    return 1 << (depth - 1).bit_length()


class WritePath(Component):
    """Stores the words of writes until the DRAM takes them.

    The bus has no strobe set for words outside a write. A WRITE is on the DRAM's port in the cycle
    after it was issued.

    Members:
        store (in, :class:`hdl.sram.SramWritePort`): write port of the store, from
            :class:`memory.controller.request_decoder.RequestDecoder`.
        issue (in, 1): a WRITE is issued.
        slot (in, slot_bits): its write slot.
        words (in, :func:`memory.controller.transaction.word_range`): its words.
        write_data (out, 64): to the DRAM.
        write_strobe (out, 8): to the DRAM.
        freed (out, 1): all words of a slot have been sent.
        freed_slot (out, slot_bits): its number.
    """

    def __init__(self, config: VaultConfig) -> None:
        self.config = config
        super().__init__(
            {
                "store": In(SramWritePort(STORE_WIDTH, store_address_bits(config))),
                "issue": In(1),
                "slot": In(slot_bits(config)),
                "words": In(word_range()),
                "write_data": Out(WORD_BITS),
                "write_strobe": Out(WORD_BITS // 8),
                "freed": Out(1),
                "freed_slot": Out(slot_bits(config)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        store = Sram(
            width=STORE_WIDTH,
            depth=config.write_slots * COLUMN_WORDS,
            read_ports=1,
            write_ports=1,
            kind=config.sram,
        )
        m.submodules.store = shared_instance(store, platform)
        (read,) = store.read
        (write,) = store.write
        writes = data.StructLayout({"slot": slot_bits(config), "words": word_range()})
        pending = Fifo(width=writes.size, depth=pending_writes(config), sram=config.sram)
        m.submodules.pending = shared_instance(pending, platform)
        current: Any = Signal(writes)
        m.d.comb += [
            write.enable.eq(self.store.enable),
            write.address.eq(self.store.address),
            write.data.eq(self.store.data),
            pending.input.valid.eq(self.issue),
            pending.input.payload.eq(Cat(self.slot, self.words)),
            current.eq(pending.output.payload),
        ]

        # Bit n: a WRITE was issued n + 1 cycles ago. The store answers a cycle later.
        in_flight = Signal(config.timing.tcwl)
        word = Signal(range(COLUMN_WORDS))
        reading = Signal()
        requested = Signal()
        m.d.sync += [
            in_flight.eq(Cat(self.issue, in_flight)[: len(in_flight)]),
            requested.eq((word >= current.words.first) & (word <= current.words.last)),
        ]
        m.d.comb += reading.eq(in_flight[-1] | (word != 0))
        with m.If(reading):
            m.d.sync += word.eq(word + 1)
        m.d.comb += [
            read.enable.eq(reading),
            read.address.eq(Cat(word, current.slot)),
            pending.output.ready.eq(reading & (word == COLUMN_WORDS - 1)),
            self.freed.eq(pending.output.ready),
            self.freed_slot.eq(current.slot),
            self.write_data.eq(read.data[:WORD_BITS]),
            self.write_strobe.eq(Mux(requested, read.data[WORD_BITS:], 0)),
        ]
        return m
