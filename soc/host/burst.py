"""The beats of an AXI burst, one after the other."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import AxiBurst, AxiResponse
from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import COLUMN_BYTES, COLUMN_WORDS, WORD_BITS
from hdl.stream_buffer import StreamBuffer

from .config import HOST_ADDRESS_BITS, PAGE_BYTES, HostConfig

#: Bits of an address that select a byte within a column; of them, those that select a word, and
#: those that select a byte within a word.
COLUMN_ADDRESS_BITS = (COLUMN_BYTES - 1).bit_length()
WORD_ADDRESS_BITS = (COLUMN_WORDS - 1).bit_length()
BYTE_ADDRESS_BITS = COLUMN_ADDRESS_BITS - WORD_ADDRESS_BITS

_PAGE_BITS = (PAGE_BYTES - 1).bit_length()
#: log2 of the bytes of the widest beat.
_MAX_SIZE = (WORD_BITS // 8 - 1).bit_length()
#: Lengths, less one, that a wrapping burst may have (AMBA AXI, A3.4.1).
_WRAP_LENGTHS = (1, 3, 7, 15)


def burst_layout(config: HostConfig) -> data.StructLayout:
    """A burst as on an address channel.

    Members:
        id (id_bits): AXI identifier.
        address (48): address of the first beat.
        length (8): beats less one.
        size (3): log2 of the bytes of a beat.
        burst (2): :class:`hdl.axi.AxiBurst` as a number, because a host can send a reserved one.
    """
    return data.StructLayout(
        {
            "id": config.id_bits,
            "address": HOST_ADDRESS_BITS,
            "length": 8,
            "size": 3,
            "burst": 2,
        }
    )


def burst_beat(config: HostConfig) -> data.StructLayout:
    """One beat of a burst.

    Members:
        id (id_bits): of the burst.
        column: number of the beat's DRAM column.
        word (2): word of the column.
        closes (1): the next beat lies in another column, or there is none. The beats up to here are
            a *piece*, which becomes one request.
        last (1): last beat of the burst.
        response (:class:`hdl.axi.AxiResponse`): DECERR if the burst begins outside the DRAM, SLVERR
            if AXI has no such burst; the memory is then not accessed.
    """
    return data.StructLayout(
        {
            "id": config.id_bits,
            "column": config.address_bits - COLUMN_ADDRESS_BITS,
            "word": WORD_ADDRESS_BITS,
            "closes": 1,
            "last": 1,
            "response": AxiResponse,
        }
    )


def ends(m: Module, touched: Value) -> tuple[Value, Value]:
    """The first and the last word of a piece, from the bits of ``touched``, the words of its beats.

    These words are consecutive for every kind of burst.
    """
    first, last = Signal(WORD_ADDRESS_BITS), Signal(WORD_ADDRESS_BITS)
    for number in range(COLUMN_WORDS):
        with m.If(touched[number]):
            m.d.comb += last.eq(number)
    for number in reversed(range(COLUMN_WORDS)):
        with m.If(touched[number]):
            m.d.comb += first.eq(number)
    return first, last


class BurstWalker(Component):
    """Steps through bursts, one beat a cycle, without a gap between bursts.

    A beat is offered in the cycle after its burst or the previous beat; there is no combinational
    path from one side to the other.

    ``response`` marks bursts that AXI does not have: beats wider than 64 bits, the reserved kind of
    burst, a wrapping burst of another length than 2, 4, 8 or 16 or that begins between beats, and
    one that crosses 4 KiB. Such a burst still has its stated number of beats.

    Members:
        burst (in, stream of :func:`burst_layout`): accepted with its last beat.
        beat (out, stream of :func:`burst_beat`): its beats.
    """

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        super().__init__(
            {
                "burst": In(stream.Signature(burst_layout(config))),
                "beat": Out(stream.Signature(burst_beat(config))),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        burst: Any = self.burst.payload
        buffer = StreamBuffer(shape=burst_beat(self.config))
        m.submodules.buffer = shared_instance(buffer, platform)
        connect(m, buffer.output, flipped(self.beat))
        beat: Any = buffer.input.payload
        in_burst = Signal()
        next_offset = Signal(_PAGE_BITS)
        done = Signal(8)
        offset, following = Signal(_PAGE_BITS), Signal(_PAGE_BITS)

        # A burst stays within a page, so only the lowest bits of its address count up.
        narrow, span = Signal(_PAGE_BITS), Signal(_PAGE_BITS)
        stepped, wrapped = Signal(_PAGE_BITS), Signal(_PAGE_BITS)
        m.d.comb += [
            offset.eq(Mux(in_burst, next_offset, burst.address)),
            narrow.eq((1 << burst.size) - 1),
            span.eq((burst.length << burst.size) | narrow),
            stepped.eq((offset | narrow) + 1),
            wrapped.eq((offset & ~span) | (stepped & span)),
        ]
        with m.Switch(burst.burst):
            with m.Case(AxiBurst.FIXED.value):
                m.d.comb += following.eq(offset)
            with m.Case(AxiBurst.WRAP.value):
                m.d.comb += following.eq(wrapped)
            with m.Default():
                m.d.comb += following.eq(stepped)

        end = Signal(range(2 * PAGE_BYTES))
        outside, illegal = Signal(), Signal()
        start = burst.address[:_PAGE_BITS]
        wraps = burst.burst == AxiBurst.WRAP.value
        m.d.comb += [
            end.eq((start & ~narrow) + (burst.length << burst.size)),
            outside.eq(burst.address >= self.config.memory_bytes),
            illegal.eq(
                (burst.size > _MAX_SIZE)
                | (burst.burst > max(kind.value for kind in AxiBurst))
                | (wraps & (start & narrow).any())
                | (wraps & ~Cat(burst.length == length for length in _WRAP_LENGTHS).any())
                | ((burst.burst == AxiBurst.INCR.value) & end[_PAGE_BITS])
            ),
            beat.id.eq(burst.id),
            beat.column.eq(Cat(offset, burst.address[_PAGE_BITS:])[COLUMN_ADDRESS_BITS:]),
            beat.word.eq(offset[BYTE_ADDRESS_BITS:]),
            beat.last.eq(done == burst.length),
            beat.closes.eq(
                beat.last | (following[COLUMN_ADDRESS_BITS:] != offset[COLUMN_ADDRESS_BITS:])
            ),
            beat.response.eq(
                Mux(
                    outside,
                    Const(AxiResponse.DECERR.value, 2),
                    Mux(illegal, AxiResponse.SLVERR.value, AxiResponse.OKAY.value),
                )
            ),
        ]

        fire = Signal()
        m.d.comb += [
            buffer.input.valid.eq(self.burst.valid),
            fire.eq(self.burst.valid & buffer.input.ready),
            # Without a burst its length is none.
            self.burst.ready.eq(fire & beat.last),
        ]
        with m.If(fire):
            m.d.sync += [
                in_burst.eq(~beat.last),
                next_offset.eq(following),
                done.eq(Mux(beat.last, 0, done + 1)),
            ]
        return m
