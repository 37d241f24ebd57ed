"""AXI4 back end of a vault: a memory on an AXI bus."""

from amaranth.hdl import Const, Elaboratable, Module
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import AxiBurst
from hdl.component import Component
from hdl.counter_bank import COUNTER_BITS
from hdl.emission import shared_instance
from hdl.ports import MemoryPort
from hdl.stream_buffer import StreamBuffer
from memory.controller.counters import INDEX_BITS

from .counters import AxiCounters
from .layout import AxiConfig, address_beat, write_beat
from .request import AxiRequestPath
from .response import AxiResponsePath
from .scoreboard import AxiScoreboard

#: Normal non-cacheable bufferable memory: writes may be acknowledged early.
_CACHE = 0b0011
#: Data access, secure, unprivileged.
_PROTECTION = 0b000


class AxiBackend(Component):
    """Performs the requests of a memory port on an AXI4 bus, for a board's HBM channel or DDR.

    Each request becomes one aligned INCR burst within a 32-byte column, with its own identifier.
    ``outstanding`` requests are in flight and may be answered in any order and interleaved.
    Accesses to one column wait for each other (:class:`memory.axi.scoreboard.AxiScoreboard`); a
    waiting request delays those behind it. An AXI error becomes the response's ``error``.

    The back end accepts one request beat and returns one response beat per cycle. A request appears
    on the bus in the cycle after its first beat; a write's data follow in the cycle after the words
    of a bus beat have arrived. A response begins 4 cycles after AXI's last beat of it.

    Parameters:
        config: see :class:`memory.axi.layout.AxiConfig`.

    Members:
        port (in, :class:`hdl.ports.MemoryPort`): requests and responses.
        axi (out, :class:`hdl.axi.Axi4`): the bus; ``bready`` and ``rready`` are always 1.
        counter_index (in, INDEX_BITS): counter of :class:`memory.axi.counters.AxiCounters` to read.
        counter_value (out, COUNTER_BITS): its value, one cycle after ``counter_index``.
    """

    def __init__(self, config: AxiConfig) -> None:
        self.config = config
        super().__init__(
            {
                "port": In(MemoryPort(address_bits=config.address_bits, tag_bits=config.tag_bits)),
                "axi": Out(config.bus),
                "counter_index": In(INDEX_BITS),
                "counter_value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        axi = self.axi
        request = AxiRequestPath(config)
        response = AxiResponsePath(config)
        scoreboard = AxiScoreboard(config)
        m.submodules.request = shared_instance(request, platform)
        m.submodules.response = shared_instance(response, platform)
        counters = AxiCounters(config)
        m.submodules.scoreboard = shared_instance(scoreboard, platform)
        m.submodules.counters = shared_instance(counters, platform)
        connect(m, flipped(self.port.request), request.request)
        connect(m, response.response, flipped(self.port.response))
        m.d.comb += [
            scoreboard.column.eq(request.column),
            scoreboard.write.eq(request.write),
            scoreboard.allocate.eq(request.allocate),
            request.conflict.eq(scoreboard.conflict),
            request.id_ready.eq(scoreboard.id_ready),
            request.id.eq(scoreboard.id),
            response.allocate.eq(request.allocate),
            response.id.eq(scoreboard.id),
            response.transfer.eq(request.transfer),
            scoreboard.free.eq(response.free),
            scoreboard.free_id.eq(response.free_id),
        ]

        # Addresses and write data.
        for channel, source in (("aw", request.write_address), ("ar", request.read_address)):
            buffer = StreamBuffer(shape=address_beat(config))
            m.submodules[f"{channel}_buffer"] = shared_instance(buffer, platform)
            connect(m, source, buffer.input)
            beat = buffer.output.payload
            m.d.comb += [
                getattr(axi, f"{channel}valid").eq(buffer.output.valid),
                buffer.output.ready.eq(getattr(axi, f"{channel}ready")),
                getattr(axi, f"{channel}id").eq(beat.id),
                getattr(axi, f"{channel}addr").eq(beat.address),
                getattr(axi, f"{channel}len").eq(beat.length),
                getattr(axi, f"{channel}size").eq((config.data_bits // 8 - 1).bit_length()),
                getattr(axi, f"{channel}burst").eq(Const(AxiBurst.INCR.value, 2)),
                getattr(axi, f"{channel}cache").eq(_CACHE),
                getattr(axi, f"{channel}prot").eq(_PROTECTION),
            ]
        data = StreamBuffer(shape=write_beat(config))
        m.submodules.w_buffer = shared_instance(data, platform)
        connect(m, request.write_data, data.input)
        m.d.comb += [
            axi.wvalid.eq(data.output.valid),
            data.output.ready.eq(axi.wready),
            axi.wdata.eq(data.output.payload.data),
            axi.wstrb.eq(data.output.payload.strobe),
            axi.wlast.eq(data.output.payload.last),
        ]

        # Responses.
        m.d.comb += [
            axi.bready.eq(1),
            axi.rready.eq(1),
            response.write_done.eq(axi.bvalid),
            response.write_done_id.eq(axi.bid),
            response.write_done_resp.eq(axi.bresp),
            response.beat.eq(axi.rvalid),
            response.beat_id.eq(axi.rid),
            response.beat_data.eq(axi.rdata),
            response.beat_resp.eq(axi.rresp),
            response.beat_last.eq(axi.rlast),
            scoreboard.write_done.eq(axi.bvalid),
            scoreboard.write_done_id.eq(axi.bid),
            scoreboard.read_done.eq(axi.rvalid & axi.rlast),
            scoreboard.read_done_id.eq(axi.rid),
        ]
        m.d.comb += [
            counters.allocate.eq(request.allocate),
            counters.free.eq(response.free),
            counters.read_done.eq(scoreboard.read_done),
            counters.write_done.eq(scoreboard.write_done),
            counters.busy.eq(axi.rvalid | (axi.wvalid & axi.wready)),
            counters.index.eq(self.counter_index),
            self.counter_value.eq(counters.value),
        ]
        return m
