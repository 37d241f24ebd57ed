"""Load history: loads of columns that the scratchpad still holds are copies within it.

The idea is Duplo's load history buffer, which renames registers; a scratchpad can only copy.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import BYTE_BITS, COLUMN_BITS, COLUMN_BYTES, WORD_BITS
from hdl.simd import rotate_units_right
from isa.limits import RANGE_BYTES
from pe.config import PeConfig
from pe.extensions.history import FENCED, HISTORY_EVENTS, column_record, overwriting
from pe.ports import ScratchpadReadPort, load_store_command, transfer_layout

from .history_table import HistoryTable
from .ports import fill_beat, is_store

_WORD_BYTES = WORD_BITS // 8
_UNIT_SHIFT = (RANGE_BYTES - 1).bit_length()
#: Units that the bytes of a column touch, at most, less one.
_MORE_UNITS = 2


class History(Component):
    """Passes commands on; cuts loads of the declared image into columns, and copies those that it
    knows to be in the scratchpad.

    A column takes two cycles to look up, then either one to pass on as a separate load, or one per
    word, plus one, to copy. A column still in flight counts as unknown.

    If an instruction is dispatched that will write a copy's source, the copy in progress becomes a
    load of that column.

    Members:
        command: stream of :func:`pe.ports.load_store_command`, in.
        piece: the same, out.
        fill: stream of :func:`pe.lsu.ports.fill_beat`, out.
        read: scratchpad read port, out, as of stores; used while ``unread`` is 0.
        settled, unread: in; of :class:`pe.lsu.request.LoadStoreRequest`, which takes the pieces.
        record, column, place, first, last: :func:`pe.extensions.history.column_record`, in; of
            answers of the memory, never in a cycle in which a beat of ``fill`` is taken.
        overwrites, first_unit, end_unit: :func:`pe.extensions.history.overwriting`, in. The first
            write comes two cycles later or after that.
        fenced: :data:`pe.extensions.history.FENCED`, in; drop all that is known. declare: in; drop
            it, too; both while ``idle``.
        idle: out; no load is being cut or copied.
        probed, copied, asked: :data:`pe.extensions.history.HISTORY_EVENTS`, out.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "command": In(stream.Signature(load_store_command(config))),
                "piece": Out(stream.Signature(load_store_command(config))),
                "fill": Out(stream.Signature(fill_beat(config))),
                "read": Out(ScratchpadReadPort(config)),
                "settled": In(1),
                "unread": In(1),
                **column_record(config).inputs(),
                **overwriting(config).inputs(),
                **FENCED.inputs(),
                "declare": In(1),
                "idle": Out(1),
                **HISTORY_EVENTS.outputs(),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        table = HistoryTable(config)
        m.submodules.table = shared_instance(table, platform)
        command = self.command.payload
        load: Any = Signal(transfer_layout(config), name="load", reset_less=True)
        copy = _Copy(config)
        # Earlier stores have read their words: the read port is free, and writes are safe.
        stores_done = Signal()
        last_column = Signal()
        m.d.comb += [
            last_column.eq(load.columns == 1),
            table.probed_column.eq(load.dram[COLUMN_BITS:]),
            table.probed_first.eq(load.dram[:COLUMN_BITS]),
            table.probed_last.eq(Mux(last_column, load.last, COLUMN_BYTES - 1)),
            table.empty.eq(self.fenced | self.declare),
            self.piece.payload.eq(command),
            self.probed.eq(table.probe),
            self.copied.eq(table.renew),
        ]
        overwriting(config).join(m, self, table)
        with m.If(~self.unread):
            m.d.sync += stores_done.eq(1)
        with m.FSM():
            with m.State("REST"):
                m.d.comb += [
                    self.idle.eq(1),
                    self.piece.valid.eq(self.command.valid & ~command.recorded),
                    self.command.ready.eq(command.recorded | self.piece.ready),
                ]
                with m.If(self.command.valid & is_store(config, command)):
                    m.d.sync += stores_done.eq(0)
                with m.If(self.command.valid & command.recorded):
                    m.d.sync += [load[name].eq(command[name]) for name in load.shape().members]
                    m.next = "LOOK"
            with m.State("LOOK"):
                m.d.comb += table.probe.eq(1)
                m.next = "FOUND"
            with m.State("FOUND"):
                m.d.sync += [
                    copy.source.eq(table.hit_place + table.probed_first),
                    copy.target.eq(load.scratchpad),
                    copy.left.eq(table.probed_last - table.probed_first + 1),
                    copy.way.eq(table.hit_way),
                    copy.buffered.eq(0),
                ]
                with m.If(table.stale):
                    m.next = "LOOK"
                with m.Elif(table.hit):
                    m.next = "COPY"
                with m.Else():
                    m.next = "LOAD"
            with m.State("LOAD"):
                # One column. What only stores and registers have stays as offered.
                piece = self.piece.payload
                m.d.comb += [
                    *(piece[name].eq(load[name]) for name in load.shape().members),
                    piece.columns.eq(1),
                    piece.last.eq(table.probed_last),
                    piece.final.eq(load.final & last_column),
                    self.piece.valid.eq(1),
                ]
                m.d.comb += self.asked.eq(self.piece.ready)
                with m.If(self.piece.ready):
                    self._advance(m, load, last_column)
            with m.State("COPY"):
                done = self._copy(m, copy, load, stores_done, last_column)
                with m.If(copy.overwritten):
                    m.next = "LOAD"
                with m.If(done):
                    m.d.comb += table.renew.eq(1)
                    self._advance(m, load, last_column)
        self._record(m, table, copy, load)
        return m

    def _advance(self, m: Module, load: Any, last_column: Signal) -> None:
        """Go on to the next column, if there is one."""
        m.d.sync += [
            load.dram.eq(Cat(Const(0, COLUMN_BITS), load.dram[COLUMN_BITS:] + 1)),
            load.scratchpad.eq(load.scratchpad + (COLUMN_BYTES - load.dram[:COLUMN_BITS])),
            load.columns.eq(load.columns - 1),
        ]
        m.next = "LOOK"
        with m.If(last_column):
            m.next = "REST"

    def _copy(
        self, m: Module, copy: "_Copy", load: Any, stores_done: Signal, last_column: Signal
    ) -> Signal:
        """Copy one word per cycle; returns 1 when the column's last word is written."""
        fill = self.fill.payload
        ends, arrives, moves, done = Signal(), Signal(), Signal(), Signal(name="copied")
        unit = copy.source[_UNIT_SHIFT:]
        size = Mux(copy.left < _WORD_BYTES, copy.left, _WORD_BYTES)
        m.d.comb += [
            ends.eq(copy.left == 0),
            # A load from the window waits for one arrival, when all that it asks for is known.
            arrives.eq(ends & (~load.lowered | (load.final & last_column))),
            self.fill.valid.eq(copy.buffered & (~arrives | ~load.lowered | self.settled)),
            fill.address.eq(copy.target),
            fill.last.eq(copy.size - 1),
            fill.entry.eq(load.entry),
            fill.final.eq(arrives),
            moves.eq(self.fill.valid & self.fill.ready),
            done.eq(moves & ends),
            self.read.enable.eq(stores_done & ~ends & (~copy.buffered | moves)),
            self.read.address.eq(copy.source),
            copy.overwritten.eq(
                self.overwrites
                & ~ends
                & (unit < self.end_unit)
                & (unit + _MORE_UNITS >= self.first_unit)
            ),
        ]
        with m.If(moves):
            m.d.sync += [copy.buffered.eq(0), copy.target.eq(copy.target + _WORD_BYTES)]
        with m.If(self.read.enable):
            m.d.sync += [
                copy.buffered.eq(1),
                copy.size.eq(size),
                copy.turn.eq(copy.source),
                copy.source.eq(copy.source + _WORD_BYTES),
                copy.left.eq(copy.left - size),
            ]
        aligned = self.config.scratchpad_alignment.bit_length() - 1
        m.d.comb += fill.data.eq(
            rotate_units_right(self.read.data, copy.turn[aligned:], 8 << aligned)
            if aligned < BYTE_BITS
            else self.read.data
        )
        return done

    def _record(self, m: Module, table: HistoryTable, copy: "_Copy", load: Any) -> None:
        """Record what has arrived from memory, or the column just copied, in its new place."""
        m.d.comb += table.way.eq(copy.way)
        column_record(self.config).join(m, self, table)
        with m.If(table.renew):
            m.d.comb += [
                table.record.eq(1),
                table.column.eq(table.probed_column),
                table.place.eq(load.scratchpad - table.probed_first),
                table.first.eq(table.probed_first),
                table.last.eq(table.probed_last),
            ]


class _Copy:
    """A copy within the scratchpad.

    Attributes:
        source, target: next byte to read, and to write. left: bytes to read.
        buffered: a word is read and not written; of ``size`` bytes, to be turned by ``turn``.
        way: of the entry that it comes from. overwritten: what is to be read will be overwritten.
    """

    def __init__(self, config: PeConfig) -> None:
        places = config.scratchpad_bits
        self.source = Signal(places, name="source", reset_less=True)
        self.target = Signal(places, name="target", reset_less=True)
        self.left = Signal(range(COLUMN_BYTES + 1), name="left", reset_less=True)
        self.buffered = Signal(name="buffered")
        self.size = Signal(range(_WORD_BYTES + 1), name="size", reset_less=True)
        self.turn = Signal(BYTE_BITS, name="turn", reset_less=True)
        self.way = Signal((config.history_ways - 1).bit_length(), name="way", reset_less=True)
        self.overwritten = Signal(name="overwritten")
