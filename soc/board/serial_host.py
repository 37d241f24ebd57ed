"""The serial host port: frames of bytes to the control bus and to the memory port."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import AxiResponse
from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import MemoryPort
from hdl.sram import Sram
from soc.chip.control_bus import ControlLink, control_message
from soc.host.config import HostConfig
from soc.host.control import interrupts, message_response
from soc.host.decode import HostDecode
from soc.host.register_map import MAP_ADDRESS_BITS

from .frame import LINK_IDENTITY, MAX_WORDS, OPERATION_BITS, WORD_BYTES, LinkRegister, Space
from .frame_ports import FrameCrc, FrameReceiver, FrameSender

#: Cycles without a byte after which a frame is dropped: 4 ms at 60 MHz, beyond the pauses of a
#: serial adapter on USB.
GAP_CYCLES = 1 << 18
_OKAY, _SLVERR, _DECERR = (
    answer.value for answer in (AxiResponse.OKAY, AxiResponse.SLVERR, AxiResponse.DECERR)
)
_ANSWER_BITS = 2
_WORD_BITS = 8 * WORD_BYTES
_BYTE_BITS = (WORD_BYTES - 1).bit_length()
_INDEX_BITS = (MAX_WORDS - 1).bit_length()


class SerialHost(Component):
    """Performs the requests of a host that arrive as bytes (:mod:`soc.board.frame`), one at a time.

    A request is performed once all of it has arrived and its CRC is right, a word at a time, up to
    the first one that fails. Bytes that arrive before the end of its response are dropped.

    Parameters:
        config: of the host port.
        digest: identifies the chip's configuration, 64 bits.
        gap: cycles without a byte after which a frame is dropped.

    Members:
        received (in, stream of bytes): from the host. sent (out, stream of bytes): to it.
        first (out, :class:`soc.chip.control_bus.ControlLink`): to the first tile; its summary is 0.
        last (in, ControlLink): from the last tile; messages are always accepted.
        port (out, :class:`hdl.ports.MemoryPort` with ``address_bits`` and ``tag_bits``): to the
            memory; responses are always accepted.
        host_interrupt (out, 1): level, 1 while an enabled interrupt is pending.
    """

    def __init__(self, config: HostConfig, *, digest: int, gap: int = GAP_CYCLES) -> None:
        self.config = config
        self.digest = digest
        self.gap = gap
        super().__init__(
            {
                "received": In(stream.Signature(8)),
                "sent": Out(stream.Signature(8)),
                "first": Out(ControlLink()),
                "last": In(ControlLink()),
                "port": Out(MemoryPort(address_bits=config.address_bits, tag_bits=config.tag_bits)),
                "host_interrupt": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        receiver, sender, crc = FrameReceiver(gap=self.gap), FrameSender(), FrameCrc()
        decode = HostDecode(self.config)
        words = Sram(
            width=_WORD_BITS, depth=MAX_WORDS, read_ports=1, write_ports=1, kind=self.config.pe.sram
        )
        m.submodules.receiver = shared_instance(receiver, platform)
        m.submodules.sender = shared_instance(sender, platform)
        m.submodules.crc = shared_instance(crc, platform)
        m.submodules.decode = shared_instance(decode, platform)
        m.submodules["words"] = shared_instance(words, platform)
        connect(m, flipped(self.received), receiver.received)
        connect(m, sender.sent, flipped(self.sent))
        interrupts(m, decode, self.last.summary, self.host_interrupt)

        writes = receiver.operation[0]
        index, address = Signal(_INDEX_BITS), Signal(_WORD_BITS)
        # What no address inside has; a frame's words carry into the lowest bit of it at most.
        low = max(self.config.address_bits, MAP_ADDRESS_BITS) + 1
        m.d.sync += address.eq(
            Cat(
                (receiver.address[:low] + Cat(Const(0, _BYTE_BITS), index))[:low],
                receiver.address[low:],
            )
        )
        answer, result = Signal(_ANSWER_BITS), Signal(_WORD_BITS)
        (read,), (write,) = words.read, words.write
        # A block RAM's output is late, and logic follows it.
        word = Signal(_WORD_BITS)
        m.d.sync += word.eq(read.data)
        # No request arrives while a response is sent, so one CRC serves both.
        sends = Signal()
        m.d.comb += [
            crc.start.eq(Mux(sends, sender.begins, receiver.start)),
            crc.valid.eq(Mux(sends, self.sent.valid & self.sent.ready, self.received.valid)),
            crc.byte.eq(Mux(sends, self.sent.payload, self.received.payload)),
            receiver.crc.eq(crc.crc),
            sender.crc.eq(crc.crc),
            read.enable.eq(1),
            read.address.eq(Mux(sends, sender.index, index)),
            sender.word.eq(read.data),
            sender.header.eq(
                Cat(
                    receiver.operation[:OPERATION_BITS],
                    answer,
                    Const(0, 8 - OPERATION_BITS - _ANSWER_BITS),
                    receiver.sequence,
                    index,
                )
            ),
            sender.reads.eq(~writes & (answer == _OKAY)),
            receiver.ready.eq(sender.ends),
            write.enable.eq(receiver.word_valid),
            write.address.eq(receiver.word_index),
            write.data.eq(receiver.word),
        ]
        before, seen = Signal(8), Signal()
        with m.FSM():
            with m.State("IDLE"):
                with m.If(receiver.valid):
                    m.d.sync += [before.eq(receiver.sequence), seen.eq(1)]
                    # The answer to a write that is repeated is still here.
                    m.next = "RESPOND"
                    with m.If(~(writes & seen & (before == receiver.sequence))):
                        m.d.sync += index.eq(0)
                        m.next = "FETCH"
            with m.State("FETCH"):
                m.next = "READ"
            with m.State("READ"):
                m.next = "START"
            with m.State("START"):
                with m.Switch(receiver.operation[1:OPERATION_BITS]):
                    with m.Case(Space.REGISTER):
                        m.next = "DECODE"
                    with m.Case(Space.MEMORY):
                        m.next = "REQUEST"
                    with m.Default():
                        m.next = "LINK"
            self._registers(m, decode, word, writes, address, answer, result)
            self._memory(m, receiver, word, address, answer, result)
            self._link(m, receiver, address, answer, result)
            with m.State("NEXT"):
                m.d.comb += [
                    write.enable.eq(~writes),
                    write.address.eq(index),
                    write.data.eq(result),
                ]
                m.next = "RESPOND"
                with m.If((answer == _OKAY) & (index != receiver.last)):
                    m.d.sync += index.eq(index + 1)
                    m.next = "FETCH"
            with m.State("RESPOND"):
                m.d.comb += [sender.start.eq(1), sends.eq(1)]
                m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += sends.eq(1)
                with m.If(sender.ends):
                    m.next = "IDLE"
        return m

    def _registers(
        self,
        m: Module,
        decode: HostDecode,
        word: Value,
        writes: Value,
        address: Signal,
        answer: Signal,
        result: Signal,
    ) -> None:
        """The states of an access to a register: a message around the control bus."""
        message: Any = Signal(control_message(), name="message")
        returned: Any = self.last.message.payload
        outside = address[MAP_ADDRESS_BITS:].any()
        m.d.comb += [
            decode.write.eq(writes),
            decode.address.eq(address),
            decode.data.eq(word),
            decode.all_bytes.eq(1),
            self.first.message.payload.eq(message),
            self.last.message.ready.eq(1),
        ]
        with m.State("DECODE"):
            m.d.comb += decode.fire.eq(~outside)
            m.d.sync += message.eq(decode.message)
            m.next = "MESSAGE"
            with m.If(outside):
                m.d.sync += answer.eq(_DECERR)
                m.next = "NEXT"
        with m.State("MESSAGE"):
            m.d.comb += self.first.message.valid.eq(1)
            with m.If(self.first.message.ready):
                m.next = "RETURN"
        with m.State("RETURN"):
            with m.If(self.last.message.valid):
                m.d.sync += [result.eq(returned.data), answer.eq(message_response(returned))]
                m.next = "NEXT"

    def _memory(
        self,
        m: Module,
        receiver: FrameReceiver,
        word: Value,
        address: Signal,
        answer: Signal,
        result: Signal,
    ) -> None:
        """The states of an access to a half of a word of the memory."""
        request, response = self.port.request, self.port.response
        bits = self.config.address_bits
        upper = address[_BYTE_BITS]
        strobe = Mux(receiver.operation[0], receiver.operation[OPERATION_BITS:], 0)
        m.d.comb += [
            request.payload.address.eq(
                Cat(Const(0, _BYTE_BITS + 1), address[_BYTE_BITS + 1 : bits])
            ),
            request.payload.write.eq(receiver.operation[0]),
            request.payload.data.eq(word.replicate(2)),
            request.payload.strobe.eq(
                Mux(
                    receiver.operation[0],
                    Mux(upper, strobe << WORD_BYTES, strobe),
                    (1 << 2 * WORD_BYTES) - 1,
                )
            ),
            request.payload.last.eq(1),
            response.ready.eq(1),
        ]
        with m.State("REQUEST"):
            with m.If(address[bits:].any()):
                m.d.sync += answer.eq(_DECERR)
                m.next = "NEXT"
            with m.Else():
                m.d.comb += request.valid.eq(1)
                with m.If(request.ready):
                    m.next = "RESPONSE"
        with m.State("RESPONSE"):
            with m.If(response.valid):
                m.d.sync += [
                    result.eq(response.payload.data.word_select(upper, _WORD_BITS)),
                    answer.eq(Mux(response.payload.error, _SLVERR, _OKAY)),
                ]
                m.next = "NEXT"

    def _link(
        self, m: Module, receiver: FrameReceiver, address: Signal, answer: Signal, result: Signal
    ) -> None:
        """The state of an access to a register of the port itself; 0 beyond."""
        values: dict[int, Value] = {
            LinkRegister.IDENTITY: Const(LINK_IDENTITY, _WORD_BITS),
            LinkRegister.DIGEST_LOW: Const(self.digest & ((1 << _WORD_BITS) - 1), _WORD_BITS),
            LinkRegister.DIGEST_HIGH: Const(self.digest >> _WORD_BITS, _WORD_BITS),
            LinkRegister.INTERRUPT: self.host_interrupt,
            LinkRegister.DROPPED: receiver.dropped,
        }
        bits = (len(values) - 1).bit_length()
        rows = [values.get(number, Const(0)) for number in range(1 << bits)]
        with m.State("LINK"):
            place = address[_BYTE_BITS : _BYTE_BITS + bits]
            m.d.sync += [result.eq(Array(rows)[place]), answer.eq(_OKAY)]
            with m.If(receiver.operation[0] | (receiver.operation[1:OPERATION_BITS] != Space.LINK)):
                m.d.sync += answer.eq(_SLVERR)
            m.next = "NEXT"
