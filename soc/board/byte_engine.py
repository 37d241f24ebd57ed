"""An engine of its own on a chip with few pins: bytes to and from a memory outside."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import ConfigurationError
from hdl.emission import shared_instance
from hdl.ports import WORD_BITS
from pe.config import PeConfig
from pe.core import Pe
from pe.interface import PeState

#: Bits of a byte, and of the tag in the first byte of a request or response.
BYTE = 8
TAG_BITS = 4


def check_engine(config: PeConfig) -> None:
    """Refuse an engine that :class:`ByteEngine` can't have.

    Raises:
        ConfigurationError: the message says why.
    """
    if config.program is None:
        raise ConfigurationError("an engine behind bytes has its program in a ROM (vip trim --rom)")
    if config.tag_bits > TAG_BITS:
        raise ConfigurationError(
            f"an engine behind bytes has a load_store_queue of at most {1 << TAG_BITS}, "
            f"not {config.load_store_queue}"
        )


class ByteEngine(Component):
    """An engine with its program built in, whose memory is behind bytes.

    The first byte of a request (:func:`hdl.ports.memory_request`) has ``tag`` in bits 3:0,
    ``words`` in 5:4, ``write`` in 6 and ``last`` in 7. The address follows, lowest byte first, and
    of a write the strobe and eight bytes of data. The first byte of a response
    (:func:`hdl.ports.memory_response`) has ``tag`` in bits 3:0, ``last`` in 4 and ``error`` in 5;
    if bit 6 is set, eight bytes of data follow.

    Parameters:
        config: of the engine, with a ``program`` and at most 16 requests in flight.

    Members:
        sent (out, stream of bytes): requests. received (in, stream of bytes): responses.
        launch (in, 1): starts the program with parameters 0; 1 for a cycle while it does not run.
        state (out, :class:`pe.interface.PeState`): of the engine.

    Raises:
        ConfigurationError: as :func:`check_engine`.
    """

    def __init__(self, config: PeConfig) -> None:
        check_engine(config)
        self.config = config
        super().__init__(
            {
                "sent": Out(stream.Signature(BYTE)),
                "received": In(stream.Signature(BYTE)),
                "launch": In(1),
                "state": Out(PeState),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        engine = Pe(self.config)
        m.submodules.engine = shared_instance(engine, platform)
        assert self.config.program is not None
        m.d.comb += [
            engine.identity.pe_count.eq(1),
            engine.control.launch.valid.eq(self.launch),
            engine.control.launch.payload.words.eq(len(self.config.program)),
            self.state.eq(engine.control.status.state),
        ]
        self._send(m, engine.memory.request)
        self._receive(m, engine.memory.response)
        return m

    def _send(self, m: Module, request: Any) -> None:
        """A request stays on offer until its last byte is taken."""
        payload = request.payload
        address = Cat(payload.address)
        tag = payload.tag | Const(0, TAG_BITS)
        parts: list[Value] = [Cat(tag, payload.words, payload.write, payload.last)]
        parts += [address[low : low + BYTE] for low in range(0, len(address), BYTE)]
        read = len(parts)
        parts.append(payload.strobe)
        parts += [payload.data[low : low + BYTE] for low in range(0, WORD_BITS, BYTE)]
        place = Signal(range(len(parts)))
        ends = place == Mux(payload.write, len(parts) - 1, read - 1)
        m.d.comb += [
            self.sent.valid.eq(request.valid),
            self.sent.payload.eq(Array(parts)[place]),
            request.ready.eq(self.sent.ready & ends),
        ]
        with m.If(self.sent.valid & self.sent.ready):
            m.d.sync += place.eq(Mux(ends, 0, place + 1))

    def _receive(self, m: Module, response: Any) -> None:
        payload = response.payload
        first, data = Signal(BYTE), Signal(WORD_BITS)
        left = Signal(range(WORD_BITS // BYTE + 1))
        whole = Signal()
        byte = self.received.payload
        m.d.comb += [
            self.received.ready.eq(~whole),
            response.valid.eq(whole),
            payload.tag.eq(first),
            payload.last.eq(first[TAG_BITS]),
            payload.error.eq(first[TAG_BITS + 1]),
            payload.data.eq(data),
        ]
        with m.If(response.ready):
            m.d.sync += whole.eq(0)
        with m.If(self.received.valid & self.received.ready):
            with m.If(left == 0):
                m.d.sync += first.eq(byte)
                with m.If(byte[TAG_BITS + 2]):
                    m.d.sync += left.eq(WORD_BITS // BYTE)
                with m.Else():
                    m.d.sync += whole.eq(1)
            with m.Else():
                m.d.sync += [
                    data.eq(Cat(data[BYTE:], byte)),
                    left.eq(left - 1),
                    whole.eq(left == 1),
                ]
