"""Request side of the load-store unit: cuts transfers into requests of one DRAM column each."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component, Probes
from hdl.ports import (
    BYTE_BITS,
    COLUMN_BITS,
    COLUMN_BYTES,
    COLUMN_WORDS,
    WORD_BITS,
    memory_request,
)
from hdl.simd import rotate_units_right
from isa.table import Opcode
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.extensions.units import extension_outputs, extensions
from pe.ports import (
    ScratchpadReadPort,
    load_store_command,
    release,
    rows_between,
    transfer_layout,
)

from .ports import is_register, is_store, load_table_entry, register_widths

_WORD_BYTES = WORD_BITS // 8


class LoadStoreRequest(Component):
    """Works through commands in order, one beat a cycle: a column of a load, a word of a store.

    A beat is formed in one cycle, its word read from the scratchpad in the next, and put in order
    and offered to the memory in the third. One further command waits while the current one is
    served.

    Members:
        command: stream of :func:`pe.ports.load_store_command`, in.
        tag_ready, tag: in; a free tag is there, and which. tag_taken: out; it is taken.
        table_write, table_tag, table_entry: out; the entry for the response to ``table_tag``.
        read: scratchpad read port, out.
        released, released_entry: :func:`pe.ports.release`, out.
        request: stream of :func:`hdl.ports.memory_request`, out.
        idle: out; no command and no beat is left here.

    Extensions have further outputs (:meth:`pe.extensions.extension.LsuExtension.outputs`).
    """

    probes = Probes(
        "formed",
        "formed_valid",
        "from_register",
        "open_tag",
        "opened",
        "place_formed",
        "request__valid",
        "sent",
        "turn",
        "value",
        "value_held",
        "waiting",
        "waits",
        "work",
        "working",
    )

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
                **extension_outputs(config, "request"),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        work = _Work(self.config)
        accepted = self._take_commands(m, work)
        self._step(m, work)
        self._note(m, work)
        self._send(m, work)
        for extension in extensions(self.config):
            extension.request(m, self, work)
        if Capabilities.of(self.config).registers.stores:
            with m.If(work.move & work.formed_valid & work.from_register & work.formed.write):
                m.d.sync += work.value_held.eq(0)
            with m.If(accepted & work.stores_register):
                m.d.sync += [work.value_held.eq(1), work.value.eq(self._lanes(m))]
        m.d.comb += self.idle.eq(
            ~work.working & ~work.waits & ~work.formed_valid & ~self.request.valid
        )
        return m

    def _take_commands(self, m: Module, work: "_Work") -> Signal:
        """The current command and the one that waits; the result says that a command is accepted
        in this cycle."""
        config = self.config
        payload = self.command.payload
        if Capabilities.of(config).registers.stores:
            m.d.comb += work.stores_register.eq(
                is_store(config, payload) & is_register(config, payload)
            )
        m.d.comb += self.command.ready.eq(~work.waits & ~(work.stores_register & work.value_held))
        accepted = Signal()
        m.d.comb += accepted.eq(self.command.valid & self.command.ready)
        transfer = transfer_layout(config)
        command: Any = Signal(transfer)
        m.d.comb += [command[name].eq(payload[name]) for name in transfer.members]
        # From here on this is the place of byte 0 of the first word, even if not requested.
        first_place = payload.dram[:BYTE_BITS]
        m.d.comb += command.scratchpad.eq(payload.scratchpad - first_place)
        goes_on = Signal()
        m.d.comb += goes_on.eq(work.waits | accepted)
        with m.If(~work.working | work.done):
            m.d.sync += [work.working.eq(goes_on), work.waits.eq(0)]
            with m.If(goes_on):
                m.d.sync += work.current.eq(Mux(work.waits, work.waiting, command))
        with m.Elif(accepted):
            m.d.sync += [work.waiting.eq(command), work.waits.eq(1)]
        return accepted

    def _step(self, m: Module, work: "_Work") -> None:
        """From beat to beat and from column to column."""
        config = self.config
        current = work.current
        final = Signal()
        m.d.comb += [
            # A register lies in one column.
            final.eq((current.columns == 1) if Capabilities.of(config).transfers else 1),
            work.end.eq(Mux(final, current.last, COLUMN_BYTES - 1)),
            work.words.eq(work.end[BYTE_BITS:] - work.word),
        ]
        # A store takes its tag with the first word of a column.
        opened = Signal()
        open_tag = Signal(config.tag_bits)
        m.d.comb += [
            work.tag.eq(Mux(opened, open_tag, self.tag)),
            work.last.eq(~work.store | (work.words == 0)),
            work.offers.eq(work.working & work.space & (opened | self.tag_ready)),
            self.tag_taken.eq(work.go & ~opened),
            work.done.eq(work.go & work.last & final),
        ]
        if work.offers is not work.go:
            m.d.comb += work.go.eq(work.offers & (~self.read.enable | self.read.ready))
        with m.If(work.go):
            m.d.sync += [
                opened.eq(~work.last),
                open_tag.eq(work.tag),
            ]
        with m.If(work.go & ~work.done):
            with m.If(work.store):
                m.d.sync += [
                    current.dram.eq(Cat(Const(0, BYTE_BITS), current.dram[BYTE_BITS:] + 1)),
                    current.scratchpad.eq(current.scratchpad + _WORD_BYTES),
                ]
            with m.Else():
                m.d.sync += [
                    current.dram.eq(Cat(Const(0, COLUMN_BITS), current.dram[COLUMN_BITS:] + 1)),
                    current.scratchpad.eq(
                        current.scratchpad + Cat(Const(0, BYTE_BITS), COLUMN_WORDS - work.word)
                    ),
                ]
            with m.If(work.last):
                m.d.sync += current.columns.eq(current.columns - 1)

    def _note(self, m: Module, work: "_Work") -> None:
        """Write the table entry for the response; read the scratchpad."""
        caps = Capabilities.of(self.config)
        current, entry, last = work.current, self.table_entry, work.end[:BYTE_BITS]
        m.d.comb += [
            self.table_write.eq(self.tag_taken),
            self.table_tag.eq(self.tag),
            entry.store.eq(work.store),
            entry.register.eq(work.register),
            entry.first.eq(work.place),
        ]
        loads_register = work.register if caps.registers.loads else Const(0, 1)
        if caps.registers.loads:
            with m.If(loads_register):
                m.d.comb += [
                    entry.target.register.index.eq(current.index),
                    entry.target.register.width.eq(current.width),
                ]
        if caps.transfers.loads:
            with m.If(~loads_register):
                m.d.comb += [
                    entry.target.scratchpad.address.eq(current.scratchpad),
                    entry.target.scratchpad.last.eq(last),
                    entry.target.scratchpad.entry.eq(current.entry),
                ]
                if self.config.shared_ports:
                    ends = Mux(work.words == 0, last, _WORD_BYTES - 1)
                    m.d.comb += [
                        entry.target.scratchpad.rows.eq(
                            rows_between(current.scratchpad, work.place, ends)
                        ),
                        entry.target.scratchpad.crosses.eq(
                            rows_between(current.scratchpad, 0, last).all()
                        ),
                    ]
        m.d.comb += [
            self.read.enable.eq(work.offers & work.store & ~work.register),
            self.read.address.eq(current.scratchpad),
            self.released.eq(work.done & work.store & ~work.register),
            self.released_entry.eq(current.entry),
        ]

    def _send(self, m: Module, work: "_Work") -> None:
        """The request: formed, with its word in the next stage, and at the port in the third."""
        config = self.config
        first_byte = Const((1 << _WORD_BYTES) - 1, _WORD_BYTES) << work.place
        last_place = Mux(work.last, work.end[:BYTE_BITS], _WORD_BYTES - 1)
        last_byte = Cat(last_place >= byte for byte in range(_WORD_BYTES))
        beat: Any = Signal(memory_request(config.address_bits, config.tag_bits))
        m.d.comb += [
            beat.address.eq(Cat(Const(0, BYTE_BITS), work.current.dram[BYTE_BITS:])),
            beat.tag.eq(work.tag),
            beat.write.eq(work.store),
            beat.words.eq(work.words),
            beat.last.eq(work.last),
            beat.strobe.eq(Mux(work.store, first_byte & last_byte, -1)),
        ]
        # Second stage: the word of a store arrives from the scratchpad, which holds it.
        out: Any = Signal.like(beat, name="sent", reset_less=True)
        m.d.comb += self.request.payload.eq(out)
        m.d.comb += [
            work.move.eq(~self.request.valid | self.request.ready),
            work.space.eq(~work.formed_valid | work.move),
        ]
        with m.If(work.space):
            m.d.sync += work.formed_valid.eq(work.go)
        with m.If(work.go):
            m.d.sync += [work.formed.eq(beat), work.from_register.eq(work.register)]
        # Third stage: the port.
        with m.If(work.move):
            m.d.sync += self.request.valid.eq(work.formed_valid)
        sends = work.move & work.formed_valid
        with m.If(sends):
            fields = memory_request(config.address_bits, config.tag_bits).members
            m.d.sync += [out[name].eq(work.formed[name]) for name in fields if name != "data"]
            with m.If(work.formed.write):
                m.d.sync += out.data.eq(self._word(work.from_register, work.value))
        aligned = config.scratchpad_alignment.bit_length() - 1
        if Capabilities.of(config).transfers.stores and aligned < BYTE_BITS:
            # Words of a store are rotated after the port's register, where there is slack.
            place_formed = Signal(BYTE_BITS - aligned, reset_less=True)
            turn = Signal(BYTE_BITS - aligned, reset_less=True)
            with m.If(work.go):
                m.d.sync += place_formed.eq(work.current.scratchpad[aligned:BYTE_BITS])
            with m.If(sends):
                m.d.sync += turn.eq(Mux(work.from_register, 0, place_formed))
            m.d.comb += self.request.payload.data.eq(
                rotate_units_right(out.data, turn, 8 << aligned)
            )

    def _word(self, from_register: Value, value: Value) -> Value:
        """The word of a store."""
        caps = Capabilities.of(self.config)
        if not caps.registers.stores:
            return self.read.data if caps.transfers.stores else Const(0, WORD_BITS)
        if not caps.transfers.stores:
            return value
        return Mux(from_register, value, self.read.data)

    def _lanes(self, m: Module) -> Signal:
        """The value to store, replicated to all naturally aligned positions."""
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


class _Work:
    """State of the request side.

    Attributes:
        current, working: the current transfer, whose ``dram``, ``scratchpad`` and ``columns`` are
            those of its remaining part, and that there is one. waiting, waits: the transfer after
            it.
        value, value_held: value to store from a register; one is kept, not one for each place in
            the queue. stores_register: the offered command has one.
        store, register: of the current transfer. word, place: where its next byte lies, in words of
            the column and bytes of the word. end: last byte of the column that it wants. words:
            words from this one to that.
        go: a beat of it goes. offers: it does when its word is read. last: the column's last one.
            done: the transfer's last one. tag: of the column's request.
        space: the second stage takes a beat. formed, formed_valid, from_register: it has one; its
            word is the value. move: the third stage takes it.
    """

    def __init__(self, config: PeConfig) -> None:
        layout = transfer_layout(config)
        current: Any = Signal(layout, name="work", reset_less=True)
        self.current = current
        self.working = Signal(name="working")
        self.waiting: Any = Signal(layout, name="waiting", reset_less=True)
        self.waiting_store = is_store(config, self.waiting)
        self.waits = Signal(name="waits")
        self.value = Signal(WORD_BITS, name="value", reset_less=True)
        self.value_held = Signal(name="value_held")
        self.stores_register = Signal(name="stores_register")
        self.store, self.register = is_store(config, current), is_register(config, current)
        self.word = current.dram[BYTE_BITS:COLUMN_BITS]
        self.place = current.dram[:BYTE_BITS]
        self.end = Signal(COLUMN_BITS, name="end")
        self.words = Signal(range(COLUMN_WORDS), name="words")
        self.go = Signal(name="go")
        self.offers = Signal(name="offers") if config.shared_ports else self.go
        self.last = Signal(name="last")
        self.done = Signal(name="done")
        self.tag = Signal(config.tag_bits, name="tag")
        self.space = Signal(name="space")
        request = memory_request(config.address_bits, config.tag_bits)
        self.formed: Any = Signal(request, name="formed", reset_less=True)
        self.formed_valid = Signal(name="formed_valid")
        self.from_register = Signal(name="from_register")
        self.move = Signal(name="move")
