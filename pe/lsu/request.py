"""Request side of the load-store unit: cuts transfers into requests of one DRAM column each."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.ports import COLUMN_BYTES, COLUMN_WORDS, WORD_BITS, memory_request
from hdl.simd import rotate_units_right
from isa.table import Opcode
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.frontend.arc import release
from pe.ports import ScratchpadReadPort

from .ports import (
    BYTE_BITS,
    COLUMN_BITS,
    is_register,
    is_store,
    load_store_command,
    load_table_entry,
    register_widths,
    transfer_layout,
)

__all__ = ["LoadStoreRequest"]

_WORD_BYTES = WORD_BITS // 8


class LoadStoreRequest(Component):
    """Works through commands in order, one beat a cycle: a column of a load, a word of a store.

    A beat is formed in one cycle, its word read from the scratchpad in the next, and put in order
    and offered to the memory in the third. One more command waits behind the one that is worked on.

    Members:
        command: stream of :func:`pe.lsu.ports.load_store_command`, in.
        tag_ready, tag: in; a free tag is there, and which. tag_taken: out; it is taken.
        table_write, table_tag, table_entry: out; what to do with the response to ``table_tag``.
        read: scratchpad read port, out.
        released, released_entry: :func:`pe.frontend.arc.release`, out.
        request: stream of :func:`hdl.ports.memory_request`, out.
        idle: out; nothing is left to be done here.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "command": In(stream.Signature(load_store_command(config))),
                "tag_ready": In(1),
                "tag": In(config.tag_bits),
                "tag_taken": Out(1),
                "table_write": Out(1),
                "table_tag": Out(config.tag_bits),
                "table_entry": Out(load_table_entry(config)),
                "read": Out(ScratchpadReadPort(config)),
                **release(config).outputs(),
                "request": Out(
                    stream.Signature(memory_request(config.address_bits, config.tag_bits))
                ),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        caps = Capabilities.of(config)
        work: Any = Signal(transfer_layout(config), reset_less=True)
        store, register = is_store(config, work), is_register(config, work)
        working = Signal()
        done = Signal()
        waiting: Any = Signal(transfer_layout(config), reset_less=True)
        waits = Signal()
        # One value to store from a register is kept, not one for each place in the queue.
        value = Signal(WORD_BITS, reset_less=True)
        value_held = Signal()
        stores_register = Signal()
        if caps.registers.stores:
            payload = self.command.payload
            m.d.comb += stores_register.eq(is_store(config, payload) & is_register(config, payload))
        m.d.comb += self.command.ready.eq(~waits & ~(stores_register & value_held))
        accepted = Signal()
        m.d.comb += accepted.eq(self.command.valid & self.command.ready)
        transfer = transfer_layout(config)
        command: Any = Signal(transfer)
        m.d.comb += [command[name].eq(self.command.payload[name]) for name in transfer.members]
        # From here on, where byte 0 of the first word belongs, even if it is not asked for.
        first_place = self.command.payload.dram[:BYTE_BITS]
        m.d.comb += command.scratchpad.eq(self.command.payload.scratchpad - first_place)
        with m.If(~working | done):
            m.d.sync += [
                working.eq(waits | accepted),
                work.eq(Mux(waits, waiting, command)),
                waits.eq(0),
            ]
        with m.Elif(accepted):
            m.d.sync += [waiting.eq(command), waits.eq(1)]

        # The column at hand: its last byte that the transfer wants, and 64-bit words up to that.
        word = work.dram[BYTE_BITS:COLUMN_BITS]
        place = work.dram[:BYTE_BITS]
        final = Signal()
        end = Signal(COLUMN_BITS)
        words = Signal(range(COLUMN_WORDS))
        m.d.comb += [
            # A register lies in one column.
            final.eq((work.columns == 1) if caps.transfers else 1),
            end.eq(Mux(final, work.last, COLUMN_BYTES - 1)),
            words.eq(end[BYTE_BITS:] - word),
        ]
        # A store takes its tag with the first word of a column.
        opened = Signal()
        tag = Signal(config.tag_bits)
        kept = Signal(config.tag_bits)
        last = Signal()
        go = Signal()
        space = Signal()
        m.d.comb += [
            tag.eq(Mux(opened, kept, self.tag)),
            last.eq(~store | (words == 0)),
            go.eq(working & space & (opened | self.tag_ready)),
            self.tag_taken.eq(go & ~opened),
            done.eq(go & last & final),
        ]
        with m.If(go):
            m.d.sync += [
                opened.eq(~last),
                kept.eq(tag),
            ]
        with m.If(go & ~done):
            with m.If(store):
                m.d.sync += [
                    work.dram.eq(Cat(Const(0, BYTE_BITS), work.dram[BYTE_BITS:] + 1)),
                    work.scratchpad.eq(work.scratchpad + _WORD_BYTES),
                ]
            with m.Else():
                m.d.sync += [
                    work.dram.eq(Cat(Const(0, COLUMN_BITS), work.dram[COLUMN_BITS:] + 1)),
                    work.scratchpad.eq(
                        work.scratchpad + Cat(Const(0, BYTE_BITS), COLUMN_WORDS - word)
                    ),
                ]
            with m.If(last):
                m.d.sync += work.columns.eq(work.columns - 1)

        entry = self.table_entry
        m.d.comb += [
            self.table_write.eq(self.tag_taken),
            self.table_tag.eq(self.tag),
            entry.store.eq(store),
            entry.register.eq(register),
            entry.first.eq(place),
        ]
        loads_register = register if caps.registers.loads else Const(0, 1)
        if caps.registers.loads:
            with m.If(loads_register):
                m.d.comb += [
                    entry.target.register.index.eq(work.index),
                    entry.target.register.width.eq(work.width),
                ]
        if caps.transfers.loads:
            with m.If(~loads_register):
                m.d.comb += [
                    entry.target.scratchpad.address.eq(work.scratchpad),
                    entry.target.scratchpad.last.eq(end[:BYTE_BITS]),
                    entry.target.scratchpad.entry.eq(work.entry),
                ]
        m.d.comb += [
            self.read.enable.eq(go & store & ~register),
            self.read.address.eq(work.scratchpad),
            self.released.eq(done & store & ~register),
            self.released_entry.eq(work.entry),
        ]

        first_byte = Const((1 << _WORD_BYTES) - 1, _WORD_BYTES) << place
        last_place = Mux(last, end[:BYTE_BITS], _WORD_BYTES - 1)
        last_byte = Cat(last_place >= byte for byte in range(_WORD_BYTES))
        beat: Any = Signal(memory_request(config.address_bits, config.tag_bits))
        m.d.comb += [
            beat.address.eq(Cat(Const(0, BYTE_BITS), work.dram[BYTE_BITS:])),
            beat.tag.eq(tag),
            beat.write.eq(store),
            beat.words.eq(words),
            beat.last.eq(last),
            beat.strobe.eq(Mux(store, first_byte & last_byte, -1)),
        ]
        # Second stage: the word of a store arrives from the scratchpad, which holds it.
        formed: Any = Signal.like(beat, name="formed", reset_less=True)
        formed_valid = Signal()
        from_register = Signal()
        out: Any = Signal.like(beat, name="sent", reset_less=True)
        m.d.comb += self.request.payload.eq(out)
        move = Signal()
        m.d.comb += [
            move.eq(~self.request.valid | self.request.ready),
            space.eq(~formed_valid | move),
        ]
        with m.If(space):
            m.d.sync += formed_valid.eq(go)
        with m.If(go):
            m.d.sync += [formed.eq(beat), from_register.eq(register)]
        # Third stage: the port.
        with m.If(move):
            m.d.sync += [
                self.request.valid.eq(formed_valid),
                out.eq(formed),
                out.data.eq(self._word(from_register, value)),
            ]
        aligned = config.scratchpad_alignment.bit_length() - 1
        if caps.transfers.stores and aligned < BYTE_BITS:
            # Words of a store are turned behind the port's register, as the memory takes its time.
            place_formed = Signal(BYTE_BITS - aligned, reset_less=True)
            turn = Signal(BYTE_BITS - aligned, reset_less=True)
            with m.If(go):
                m.d.sync += place_formed.eq(work.scratchpad[aligned:BYTE_BITS])
            with m.If(move):
                m.d.sync += turn.eq(Mux(from_register, 0, place_formed))
            m.d.comb += self.request.payload.data.eq(
                rotate_units_right(out.data, turn, 8 << aligned)
            )
        if caps.registers.stores:
            with m.If(move & formed_valid & from_register & formed.write):
                m.d.sync += value_held.eq(0)
            with m.If(accepted & stores_register):
                m.d.sync += [value_held.eq(1), value.eq(self._lanes(m))]
        m.d.comb += self.idle.eq(~working & ~waits & ~formed_valid & ~self.request.valid)
        return m

    def _word(self, from_register: Value, value: Value) -> Value:
        """The word of a store."""
        caps = Capabilities.of(self.config)
        if not caps.registers.stores:
            return self.read.data if caps.transfers.stores else Const(0, WORD_BITS)
        if not caps.transfers.stores:
            return value
        return Mux(from_register, value, self.read.data)

    def _lanes(self, m: Module) -> Signal:
        """The value to store, repeated so that every naturally aligned place of it is served."""
        payload = self.command.payload
        lanes = Signal(WORD_BITS)
        caps = Capabilities.of(self.config).registers
        value = Signal(WORD_BITS)
        m.d.comb += value.eq(payload.value.as_signed())
        with m.Switch(payload.width):
            for width in register_widths(self.config, Opcode.ST_REG):
                with m.Case(caps.width.code(width)):
                    copies = WORD_BITS // width.bits
                    m.d.comb += lanes.eq(value[: width.bits].replicate(copies))
        return lanes
