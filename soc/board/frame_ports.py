"""Frames in hardware: reception of requests and transmission of responses."""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component

from .frame import (
    CRC_BYTES,
    MAX_WORDS,
    REQUEST,
    REQUEST_HEADER_BYTES,
    RESPONSE,
    RESPONSE_HEADER_BYTES,
    WORD_BYTES,
)

#: Bits of the register, its value before the first byte, and after a message and its CRC.
CRC_BITS = 32
CRC_START = (1 << CRC_BITS) - 1
CRC_RESIDUE = 0xDEBB20E3
_POLYNOMIAL = 0xEDB88320


def crc_step(crc: Signal, byte: Value) -> Value:
    """The register after ``byte``, from ``crc``, the one before; the CRC is its complement."""
    # Which bits of the register (from 0) and of the byte (from CRC_BITS) each bit is the sum of.
    bits = [{number} for number in range(CRC_BITS)]
    for number in range(8):
        bits[number] = bits[number] ^ {CRC_BITS + number}
    for _ in range(8):
        low, bits = bits[0], [*bits[1:], set[int]()]
        bits = [one ^ low if _POLYNOMIAL >> place & 1 else one for place, one in enumerate(bits)]
    both = Cat(crc, byte)
    return Cat(reduce(xor, (both[number] for number in sorted(one))) for one in bits)


_WORD_BITS = 8 * WORD_BYTES
_INDEX_BITS = (MAX_WORDS - 1).bit_length()
#: Parts of a frame after its first byte, with their bytes.
_PARTS = {"HEADER": REQUEST_HEADER_BYTES, "WORDS": WORD_BYTES, "CHECK": CRC_BYTES}


class FrameCrc(Component):
    """The CRC of a frame, of either direction.

    Members:
        start (in, 1): there is no byte yet. valid (in, 1): ``byte`` (in, 8) is the next one.
        crc (out, 32): the register, whose complement is the CRC of the bytes.
    """

    def __init__(self) -> None:
        super().__init__({"start": In(1), "valid": In(1), "byte": In(8), "crc": Out(CRC_BITS)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        with m.If(self.start):
            m.d.sync += self.crc.eq(CRC_START)
        with m.Elif(self.valid):
            m.d.sync += self.crc.eq(crc_step(self.crc, self.byte))
        return m


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
        start (out, 1): a frame begins. crc (in, 32): of its bytes (:class:`FrameCrc`).
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
                "start": Out(1),
                "crc": In(CRC_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        arrives, byte = self.received.valid, self.received.payload
        header, word = Signal(8 * REQUEST_HEADER_BYTES), Signal(_WORD_BITS)
        step = Signal(range(REQUEST_HEADER_BYTES))
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
            m.d.sync += step.eq(Mux(ends, 0, step + 1))
        with m.FSM():
            with m.State("HUNT"):
                with m.If(arrives & (byte == REQUEST)):
                    m.d.comb += self.start.eq(1)
                    m.d.sync += [step.eq(0), index.eq(0)]
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
                with m.If(self.crc != CRC_RESIDUE):
                    m.d.comb += drop.eq(1)
                    m.next = "HUNT"
            with m.State("READY"):
                m.d.comb += self.valid.eq(1)
                with m.If(self.ready):
                    m.next = "HUNT"
        return m


class FrameSender(Component):
    """Sends a response (:mod:`soc.board.frame`) as bytes.

    Members:
        header (in, 24): its bytes after the first one. reads (in, 1): words follow; both stay
            until the end.
        start (in, 1): begin; only if it does not send.
        ends (out, 1): the last byte is taken at the end of this cycle.
        index (out, 8): number of the word to send next. word (in, 32): it, from two cycles after a
            change of ``index`` on, and two after ``start``.
        sent (out, stream of bytes): the frame.
        begins (out, 1): its first byte is taken. crc (in, 32): of the bytes after it
            (:class:`FrameCrc`).
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "header": In(8 * RESPONSE_HEADER_BYTES),
                "reads": In(1),
                "start": In(1),
                "ends": Out(1),
                "index": Out(_INDEX_BITS),
                "word": In(8 * WORD_BYTES),
                "sent": Out(stream.Signature(8)),
                "begins": Out(1),
                "crc": In(CRC_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        # The bytes to send, the lowest first, and how many besides it.
        rest, left = Signal(8 * WORD_BYTES), Signal(range(WORD_BYTES))
        last = self.header[-_INDEX_BITS:]
        taken, over = Signal(), Signal()
        m.d.comb += [
            self.sent.payload.eq(rest[:8]),
            taken.eq(self.sent.valid & self.sent.ready),
            over.eq(taken & (left == 0)),
        ]
        with m.If(taken):
            m.d.sync += [rest.eq(rest[8:]), left.eq(left - 1)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [
                    rest.eq(Cat(Const(RESPONSE, 8), self.header)),
                    left.eq(RESPONSE_HEADER_BYTES),
                    self.index.eq(0),
                ]
                with m.If(self.start):
                    m.next = "HEADER"
            with m.State("HEADER"):
                m.d.comb += self.sent.valid.eq(1)
                m.d.comb += self.begins.eq(taken & (left == RESPONSE_HEADER_BYTES))
                with m.If(over):
                    m.next = "CRC"
                    with m.If(self.reads):
                        m.next = "WORD"
            with m.State("WORD"):
                m.d.sync += [rest.eq(self.word), left.eq(WORD_BYTES - 1)]
                m.next = "BYTES"
            with m.State("BYTES"):
                m.d.comb += self.sent.valid.eq(1)
                with m.If(over):
                    m.d.sync += self.index.eq(self.index + 1)
                    m.next = "NEXT"
                    with m.If(self.index == last):
                        m.next = "CRC"
            with m.State("NEXT"):
                # The memory reads the word.
                m.next = "WORD"
            with m.State("CRC"):
                m.d.sync += [rest.eq(~self.crc), left.eq(CRC_BYTES - 1)]
                m.next = "END"
            with m.State("END"):
                m.d.comb += [self.sent.valid.eq(1), self.ends.eq(over)]
                with m.If(over):
                    m.next = "IDLE"
        return m
