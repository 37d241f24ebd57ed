"""Lowering: turns loads from a workspace's window into loads of the image and writes of zeros."""

from typing import Any

from amaranth.hdl import Elaboratable, Module, Mux, Shape, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.ports import BYTE_BITS, COLUMN_BITS, COLUMN_BYTES
from pe.config import PeConfig
from pe.ports import load_store_command

from .ports import fill_beat
from .workspace import PIXEL_BITS, geometry, offset_bits, row_bits

_WORD_BYTES = 1 << BYTE_BITS
#: Levels of a place in the window: row of positions, position, kernel row.
_LEVELS = 3


class Lowering(Component):
    """Passes commands on, those that are no loads from the window in the cycle in which they come.

    The place of a load in the window is divided into row of positions, position, kernel row and
    byte of it, a bit of a quotient a cycle; a load that begins where the one before it ended needs
    no division. Each kernel row is then cut into a load of the pixels within the image, and zeros
    for those beside it. A piece of the image takes two cycles at least, one of zeros a cycle more
    than it has words.

    Members:
        command: stream of :func:`pe.ports.load_store_command`, in.
        piece: the same, out; ``final`` is set in the last piece of a load from the window.
        fill: stream of :func:`pe.lsu.ports.fill_beat`, out.
        geometry: :func:`pe.lsu.workspace.geometry`, in. fresh: in; it is another one from now on.
        settled: in; every column of the pieces so far has been asked for or copied, and every word
            of the stores before them read.
        idle: out; no load is being cut.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "command": In(stream.Signature(load_store_command(config))),
                "piece": Out(stream.Signature(load_store_command(config))),
                "fill": Out(stream.Signature(fill_beat(config))),
                "geometry": In(geometry(config)),
                "fresh": In(1),
                "settled": In(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        command = self.command.payload
        at = _Place(self.config)
        layout = load_store_command(self.config)
        carried = {name: layout[name].shape for name in ("scratchpad", "bytes", "entry")}
        load: Any = Signal(data.StructLayout(carried), name="load", reset_less=True)
        follows = Signal()
        following = Signal.like(command.dram, name="following", reset_less=True)
        with m.If(self.fresh):
            m.d.sync += follows.eq(0)
        m.d.comb += self.piece.payload.eq(command)
        with m.FSM():
            with m.State("REST"):
                m.d.comb += [
                    self.idle.eq(1),
                    self.piece.valid.eq(self.command.valid & ~command.lowered),
                    self.command.ready.eq(command.lowered | self.piece.ready),
                ]
                with m.If(self.command.valid & command.lowered):
                    m.d.sync += [
                        *(load[name].eq(command[name]) for name in carried),
                        at.stores_done.eq(0),
                        follows.eq(1),
                        following.eq(command.dram + command.bytes),
                    ]
                    m.next = "PLAN"
                    with m.If(~follows | (command.dram != following)):
                        m.d.sync += at.byte.eq(command.dram - self.geometry.window)
                        at.begin(m, self.geometry)
                        m.next = "DIVIDE"
            with m.State("DIVIDE"):
                with m.If(at.divide(m, self.geometry)):
                    m.next = "PLAN"
            with m.State("PLAN"):
                self._plan(m, at)
                m.next = "SEND"
            with m.State("SEND"):
                with m.If(self.settled):
                    m.d.sync += at.stores_done.eq(1)
                part, accepted = self._send(m, at, load)
                with m.If(accepted):
                    ended = at.advance(m, self.geometry, part)
                    m.d.sync += [
                        load.scratchpad.eq(load.scratchpad + part),
                        load.bytes.eq(load.bytes - part),
                        at.span.eq(at.span - part),
                    ]
                    with m.If(load.bytes == part):
                        m.next = "REST"
                    with m.Elif(ended | (at.span == part)):
                        m.next = "PLAN"
        return m

    def _plan(self, m: Module, at: "_Place") -> None:
        """The next piece: up to the end of the kernel row, or to an edge of the image."""
        g = self.geometry
        offset = Signal(signed(offset_bits()))
        row = Signal(signed(row_bits()))
        left = Signal(len(at.span), name="left_of_run")
        outside = Signal()
        before = Signal()
        edge = Signal(len(offset))
        m.d.comb += [
            offset.eq(at.left + at.byte[: len(at.span)]),
            row.eq(at.top + at.kernel_row),
            left.eq(g.run - at.byte),
            before.eq(offset < 0),
            outside.eq((row < 0) | (row >= g.height) | (offset >= g.pitch)),
            edge.eq(Mux(before, -offset, g.pitch - offset)),
        ]
        m.d.sync += [
            at.zeros.eq(outside | before),
            at.offset.eq(offset),
            at.span.eq(Mux(~outside & (edge < left), edge, left)),
        ]

    def _send(self, m: Module, at: "_Place", load: Any) -> tuple[Signal, Signal]:
        """Offer the piece, or a word of it if it is of zeros; the result is its bytes, and that it
        is taken."""
        config = self.config
        room = Signal(len(at.span))
        part = Signal(len(at.span), name="part")
        final = Signal()
        accepted = Signal()
        dram = Signal(config.address_bits)
        columns = Signal(len(part) + 1)
        piece, fill = self.piece.payload, self.fill.payload
        m.d.comb += [
            room.eq(Mux(at.zeros & (at.span > _WORD_BYTES), _WORD_BYTES, at.span)),
            part.eq(Mux(load.bytes < room, load.bytes, room)),
            final.eq(load.bytes == part),
            dram.eq(at.base + at.offset),
            columns.eq(dram[:COLUMN_BITS] + part + COLUMN_BYTES - 1),
            self.piece.valid.eq(~at.zeros),
            piece.lowered.eq(1),
            piece.recorded.eq(1),
            piece.dram.eq(dram),
            piece.scratchpad.eq(load.scratchpad),
            piece.entry.eq(load.entry),
            piece.columns.eq(columns[COLUMN_BITS:]),
            piece.last.eq(dram + part - 1),
            piece.final.eq(final),
            # What only stores and registers have stays as offered.
            *(piece[name].eq(0) for name in ("store", "register")),
            # An earlier store must read its source first; and the load must not complete before all
            # that it waits for is known.
            self.fill.valid.eq(at.zeros & (self.settled | (at.stores_done & ~final))),
            fill.address.eq(load.scratchpad),
            fill.last.eq(part - 1),
            fill.entry.eq(load.entry),
            fill.final.eq(final),
            accepted.eq(Mux(at.zeros, self.fill.valid & self.fill.ready, self.piece.ready)),
        ]
        return part, accepted


class _Place:
    """A place in the window, and the piece that begins there.

    Attributes:
        byte: of the kernel row; before that what is left to divide.
        column: of the position. kernel_row: of the position's pixels.
        left: place of the position's first byte in a row of the image, in bytes; signed. top: row
            of the image in which it begins; signed.
        line, base: address of a row of the image, padding included: of the position's first one and
            of the kernel row's.
        stores_done: earlier stores have read their sources.
        zeros, span, offset: the piece is of zeros; its bytes; where it begins in the row ``base``.
    """

    def __init__(self, config: PeConfig) -> None:
        bits = config.address_bits
        layout = geometry(config)
        self.byte = Signal(bits, name="byte", reset_less=True)
        self.column = Signal(PIXEL_BITS, name="column", reset_less=True)
        self.kernel_row = Signal(layout["kernel"].shape, name="kernel_row", reset_less=True)
        self.left = Signal(signed(offset_bits()), name="left", reset_less=True)
        self.top = Signal(signed(row_bits()), name="top", reset_less=True)
        self.line = Signal(bits, name="line", reset_less=True)
        self.base = Signal(bits, name="base", reset_less=True)
        self.stores_done = Signal(name="stores_done", reset_less=True)
        self.zeros = Signal(name="zeros", reset_less=True)
        self.span = Signal(layout["run"].shape, name="span", reset_less=True)
        self.offset = Signal(layout["pitch"].shape, name="offset", reset_less=True)
        # Of the division.
        widest = max(bits, Shape.cast(layout["line"].shape).width)
        self.level = Signal(range(_LEVELS), name="level", reset_less=True)
        self.divisor = Signal(widest + 1, name="divisor", reset_less=True)
        self.depth = Signal(range(PIXEL_BITS + 1), name="depth", reset_less=True)
        self.rising = Signal(name="rising", reset_less=True)
        self.ended = Signal(name="ended", reset_less=True)
        self.total = Signal(max(bits, offset_bits()), name="sum", reset_less=True)
        self.count = Signal(row_bits(), name="count", reset_less=True)

    def begin(self, m: Module, g: Any) -> None:
        """Begin to divide ``byte``."""
        m.d.sync += [self.level.eq(0), self.divisor.eq(g.line)]
        self._next_level(m)

    def _next_level(self, m: Module) -> None:
        m.d.sync += [
            self.depth.eq(0),
            self.rising.eq(1),
            self.ended.eq(0),
            self.total.eq(0),
            self.count.eq(0),
        ]

    def divide(self, m: Module, g: Any) -> Signal:
        """A cycle of the division; the result says that it is the last.

        The divisor rises above the rest, and falls again by a bit of the quotient a cycle. Products
        with the quotient come with its bits: they are doubled, and a factor is added for a 1.
        """
        done = Signal(name="divided")
        fits = Signal(name="fits")
        far = Signal(len(self.total), name="far")
        near = Signal(len(self.count), name="near")
        m.d.comb += fits.eq(self.byte >= self.divisor)
        with m.Switch(self.level):
            with m.Case(0):
                m.d.comb += [far.eq(g.hop), near.eq(g.stride)]
            with m.Case(1):
                m.d.comb += [far.eq(g.step), near.eq(1)]
            with m.Default():
                m.d.comb += [far.eq(g.pitch), near.eq(1)]
        with m.If(self.ended):
            self._next_level(m)
            m.d.sync += self.level.eq(self.level + 1)
            with m.Switch(self.level):
                with m.Case(0):
                    m.d.sync += [
                        self.line.eq(self.total + g.origin),
                        self.top.eq(self.count - g.padding),
                        self.divisor.eq(g.row),
                    ]
                with m.Case(1):
                    m.d.sync += [
                        self.left.eq(self.total - g.margin),
                        self.column.eq(self.count),
                        self.divisor.eq(g.run),
                    ]
                with m.Default():
                    m.d.sync += [
                        self.base.eq(self.total + self.line),
                        self.kernel_row.eq(self.count),
                    ]
                    m.d.comb += done.eq(1)
        with m.Elif(self.rising):
            with m.If(fits):
                m.d.sync += [self.divisor.eq(self.divisor << 1), self.depth.eq(self.depth + 1)]
            with m.Else():
                m.d.sync += [
                    self.divisor.eq(self.divisor >> 1),
                    self.depth.eq(self.depth - 1),
                    self.rising.eq(0),
                    self.ended.eq(self.depth == 0),
                ]
        with m.Else():
            m.d.sync += [
                self.divisor.eq(self.divisor >> 1),
                self.depth.eq(self.depth - 1),
                self.ended.eq(self.depth == 0),
                self.total.eq((self.total << 1) + Mux(fits, far, 0)),
                self.count.eq((self.count << 1) + Mux(fits, near, 0)),
            ]
            with m.If(fits):
                m.d.sync += self.byte.eq(self.byte - self.divisor)
        return done

    def advance(self, m: Module, g: Any, part: Signal) -> Signal:
        """Go on by ``part`` bytes; the result says that the kernel row ends."""
        ended = Signal(name="row_ended")
        place = Signal(len(part) + 1, name="next_byte")
        m.d.comb += [place.eq(self.byte[: len(part)] + part), ended.eq(place == g.run)]
        m.d.sync += self.byte.eq(place)
        with m.If(ended):
            m.d.sync += [
                self.byte.eq(0),
                self.kernel_row.eq(self.kernel_row + 1),
                self.base.eq(self.base + g.pitch),
            ]
            with m.If(self.kernel_row + 1 == g.kernel):
                m.d.sync += [
                    self.kernel_row.eq(0),
                    self.base.eq(self.line),
                    self.column.eq(self.column + 1),
                    self.left.eq(self.left + g.step),
                ]
                with m.If(self.column + 1 == g.output_width):
                    m.d.sync += [
                        self.column.eq(0),
                        self.left.eq(-g.margin),
                        self.line.eq(self.line + g.hop),
                        self.base.eq(self.line + g.hop),
                        self.top.eq(self.top + g.stride),
                    ]
        return ended
