"""The host's control port: AXI4-Lite to the control bus."""

from typing import Any

from amaranth.hdl import Array, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import Axi4Lite, AxiResponse
from hdl.component import Component
from hdl.emission import shared_instance
from hdl.round_robin import RoundRobin
from hdl.stream_buffer import StreamBuffer
from soc.chip.control_bus import ControlLink, control_message

from .config import BASE_BITS, HostConfig
from .decode import HostDecode
from .register_map import CHIP, MAP_ADDRESS_BITS
from .register_types import WORD_BYTES

#: Maximum writes in flight: the cycles around a ring of 32 tiles, and some more.
WRITES = 40
#: Maximum reads in flight. Software reads registers one at a time.
READS = 4

_DATA_BITS = WORD_BYTES * 8


class HostControl(Component):
    """Subordinate of an AXI4-Lite bus for the registers of :mod:`soc.host.register_map`.

    Reads and writes are served in turn and follow each other on the control bus, so each kind keeps
    its order. Registers that the map does not have are answered with DECERR, accesses that are not
    allowed with SLVERR, both without effect. The responses of both kinds have their own buffers,
    with room for each access in flight, so a host that does not accept its responses delays only
    accesses of the same kind. From address to response, both counted, an access takes 5 cycles and
    one for each tile, and a read 4 more in each tile that it addresses.

    Parameters:
        config: of the host port.

    Members:
        axi (in, :class:`hdl.axi.Axi4Lite`): from the host.
        first (out, :class:`soc.chip.control_bus.ControlLink`): to the first tile; its summary is 0.
        last (in, ControlLink): from the last tile; messages are always accepted.
        host_interrupt (out, 1): level, 1 while an enabled interrupt is pending.
        bases (out, BASE_BITS by vault): where its memory begins on its bus; only with them.
    """

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        bases = {"bases": Out(BASE_BITS).array(config.vaults)} if config.bases else {}
        super().__init__(
            {
                "axi": In(Axi4Lite(address_bits=MAP_ADDRESS_BITS)),
                "first": Out(ControlLink()),
                "last": In(ControlLink()),
                "host_interrupt": Out(1),
                **bases,
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        axi = self.axi
        decode = HostDecode(self.config)
        m.submodules.decode = shared_instance(decode, platform)
        outgoing = StreamBuffer(shape=control_message())
        m.submodules.outgoing = shared_instance(outgoing, platform)
        connect(m, outgoing.output, flipped(self.first.message))

        write_beat = data.StructLayout({"data": _DATA_BITS, "strobe": WORD_BYTES})
        aw, w, ar = (
            StreamBuffer(shape=shape) for shape in (MAP_ADDRESS_BITS, write_beat, MAP_ADDRESS_BITS)
        )
        for name, buffer in (("aw", aw), ("w", w), ("ar", ar)):
            m.submodules[name] = shared_instance(buffer, platform)
            m.d.comb += [
                buffer.input.valid.eq(getattr(axi, f"{name}valid")),
                getattr(axi, f"{name}ready").eq(buffer.input.ready),
            ]
        m.d.comb += [
            aw.input.payload.eq(axi.awaddr),
            w.input.payload.data.eq(axi.wdata),
            w.input.payload.strobe.eq(axi.wstrb),
            ar.input.payload.eq(axi.araddr),
        ]

        # One access at a time enters, when there is room for its response.
        arbiter = RoundRobin(count=2)
        m.submodules["arbiter"] = shared_instance(arbiter, platform)
        reads, writes = Signal(range(READS + 1)), Signal(range(WRITES + 1))
        decode_valid = Signal()
        push, pop = Signal(), Signal()
        accept_write, accept_read = Signal(), Signal()
        m.d.comb += [
            arbiter.requests[0].eq(aw.output.valid & w.output.valid & (writes != WRITES)),
            arbiter.requests[1].eq(ar.output.valid & (reads != READS)),
            pop.eq(decode_valid & outgoing.input.ready),
            push.eq(arbiter.requests.any() & (~decode_valid | pop)),
            arbiter.advance.eq(push),
            accept_write.eq(push & arbiter.grant[0]),
            accept_read.eq(push & arbiter.grant[1]),
            aw.output.ready.eq(accept_write),
            w.output.ready.eq(accept_write),
            ar.output.ready.eq(accept_read),
        ]
        with m.If(push):
            m.d.sync += [
                decode_valid.eq(1),
                decode.write.eq(accept_write),
                decode.address.eq(Mux(accept_write, aw.output.payload, ar.output.payload)),
                decode.data.eq(w.output.payload.data),
                decode.all_bytes.eq(w.output.payload.strobe.all()),
            ]
        with m.Elif(pop):
            m.d.sync += decode_valid.eq(0)
        m.d.comb += [
            decode.fire.eq(pop),
            outgoing.input.valid.eq(decode_valid),
            outgoing.input.payload.eq(decode.message),
        ]

        wrote, read = self._responses(m, platform)
        m.d.sync += [
            writes.eq(writes + accept_write - wrote),
            reads.eq(reads + accept_read - read),
        ]
        interrupts(m, decode, self.last.summary, self.host_interrupt)
        if self.config.bases:
            m.d.comb += decode.base.eq(Array(self.bases)[decode.base_vault])
            for vault, base in enumerate(self.bases):
                for half, write in enumerate(decode.base_write):
                    with m.If(write & (decode.base_vault == vault)):
                        m.d.sync += base.word_select(half, _DATA_BITS).eq(decode.data)
        return m

    def _responses(self, m: Module, platform: object) -> tuple[Value, Value]:
        """Answer the host with the messages' responses; returns whether it takes that of a write,
        and of a read."""
        axi = self.axi
        message: Any = self.last.message.payload
        arrived = self.last.message.valid
        response = Signal(AxiResponse)
        b = StreamBuffer(shape=AxiResponse, depth=WRITES)
        r = StreamBuffer(
            shape=data.StructLayout({"data": _DATA_BITS, "response": AxiResponse}), depth=READS
        )
        m.submodules.b = shared_instance(b, platform)
        m.submodules.r = shared_instance(r, platform)
        m.d.comb += [
            self.last.message.ready.eq(1),
            response.eq(message_response(message)),
            b.input.valid.eq(arrived & message.write),
            b.input.payload.eq(response),
            r.input.valid.eq(arrived & ~message.write),
            r.input.payload.data.eq(message.data),
            r.input.payload.response.eq(response),
            axi.bvalid.eq(b.output.valid),
            axi.bresp.eq(b.output.payload),
            b.output.ready.eq(axi.bready),
            axi.rvalid.eq(r.output.valid),
            axi.rdata.eq(r.output.payload.data),
            axi.rresp.eq(r.output.payload.response),
            r.output.ready.eq(axi.rready),
        ]
        return b.output.valid & axi.bready, r.output.valid & axi.rready


def message_response(message: Any) -> Value:
    """The bus's answer to the access that came back as ``message``
    (:func:`soc.chip.control_bus.control_message`)."""
    unaddressed = ~message.addressed & (message.response == AxiResponse.OKAY)
    return Mux(unaddressed, AxiResponse.SLVERR.value, message.response)


def interrupts(m: Module, decode: HostDecode, summary: Any, host_interrupt: Signal) -> None:
    """Store events until the host clears them.

    Parameters:
        m: module that the logic becomes part of, in domain ``sync``.
        decode: a part of it. summary: of all tiles (:func:`soc.chip.control_bus.control_summary`).
        host_interrupt: driven; 1 while an enabled interrupt is pending.
    """
    was_running = Signal()
    pending = Signal.like(decode.interrupt_status)
    enabled = Signal.like(decode.interrupt_status)
    events = Signal.like(decode.interrupt_status)
    fields = CHIP.register("INTERRUPT_STATUS").fields
    causes = {
        "done": was_running & ~summary.running,
        "fault": summary.fault,
    }
    m.d.sync += [
        was_running.eq(summary.running),
        pending.eq((pending & ~decode.interrupt_clear) | events),
    ]
    with m.If(decode.interrupt_enable):
        m.d.sync += enabled.eq(decode.data)
    m.d.comb += [
        *(events[field.low].eq(causes[field.name]) for field in fields),
        decode.interrupt_status.eq(pending),
        decode.interrupt_enabled.eq(enabled),
        decode.running.eq(summary.running),
        decode.faulted.eq(summary.faulted),
        host_interrupt.eq((pending & enabled).any()),
    ]
