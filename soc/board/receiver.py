"""Reception of request frames."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component

from .crc import CRC_BITS, CRC_RESIDUE, CRC_START, crc_step
from .frame import CRC_BYTES, MAX_WORDS, REQUEST, REQUEST_HEADER_BYTES, WORD_BYTES

_WORD_BITS = 8 * WORD_BYTES
_INDEX_BITS = (MAX_WORDS - 1).bit_length()
#: Parts of a frame after its first byte, with their bytes.
_PARTS = {"HEADER": REQUEST_HEADER_BYTES, "WORDS": WORD_BYTES, "CHECK": CRC_BYTES}


class FrameReceiver(Component):
    """Finds requests (:mod:`soc.board.frame`) in a stream of bytes; drops what is none.

    Parameters:
        gap: cycles without a byte after which a frame is dropped.

    Members:
        received (in, stream of bytes): always accepted; while a request waits they are dropped.
        word_valid (out, 1): a word of a write has arrived; word_index (out, 8): its number;
            word (out, 32): it.
        valid (out, 1): a whole request with the right CRC waits; until ``ready``.
        ready (in, 1): it has been answered.
        operation (out, 8), sequence (out, 8), last (out, 8), address (out, 32): of the request;
            ``last`` is the number of its last word.
        dropped (out, 16): frames dropped, modulo 2**16.
    """

    def __init__(self, *, gap: int) -> None:
        self.gap = gap
        super().__init__(
            {
                "received": In(stream.Signature(8)),
                "word_valid": Out(1),
                "word_index": Out(_INDEX_BITS),
                "word": Out(_WORD_BITS),
                "valid": Out(1),
                "ready": In(1),
                "operation": Out(8),
                "sequence": Out(8),
                "last": Out(_INDEX_BITS),
                "address": Out(32),
                "dropped": Out(16),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        arrives, byte = self.received.valid, self.received.payload
        header, word = Signal(8 * REQUEST_HEADER_BYTES), Signal(_WORD_BITS)
        step, crc = Signal(range(REQUEST_HEADER_BYTES)), Signal(CRC_BITS)
        silence, drop, ends = Signal(range(self.gap)), Signal(), Signal()
        index = self.word_index
        m.d.comb += [
            self.received.ready.eq(1),
            Cat(self.operation, self.sequence, self.last, self.address).eq(header),
            self.word.eq(Cat(word[8:], byte)),
        ]
        m.d.sync += [
            silence.eq(Mux(arrives, 0, silence + 1)),
            self.dropped.eq(self.dropped + drop),
        ]
        with m.If(arrives):
            m.d.sync += [crc.eq(crc_step(crc, byte)), step.eq(Mux(ends, 0, step + 1))]
        with m.FSM():
            with m.State("HUNT"):
                with m.If(arrives & (byte == REQUEST)):
                    m.d.sync += [step.eq(0), index.eq(0), crc.eq(CRC_START)]
                    m.next = "HEADER"
            for part, size in _PARTS.items():
                with m.State(part):
                    m.d.comb += ends.eq(step == size - 1)
                    with m.If(arrives):
                        if part == "HEADER":
                            m.d.sync += header.eq(Cat(header[8:], byte))
                            with m.If(ends):
                                # The operation is in the lowest byte after this one.
                                m.next = "WORDS"
                                with m.If(~header[8]):
                                    m.next = "CHECK"
                        elif part == "WORDS":
                            m.d.sync += word.eq(self.word)
                            m.d.comb += self.word_valid.eq(ends)
                            with m.If(ends):
                                m.d.sync += index.eq(index + 1)
                                with m.If(index == self.last):
                                    m.next = "CHECK"
                        else:
                            with m.If(ends):
                                m.next = "VERIFY"
                    with m.Elif(silence == self.gap - 1):
                        m.d.comb += drop.eq(1)
                        m.next = "HUNT"
            with m.State("VERIFY"):
                m.next = "READY"
                with m.If(crc != CRC_RESIDUE):
                    m.d.comb += drop.eq(1)
                    m.next = "HUNT"
            with m.State("READY"):
                m.d.comb += self.valid.eq(1)
                with m.If(self.ready):
                    m.next = "HUNT"
        return m
