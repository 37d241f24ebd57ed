"""The host's data port: AXI4 to a memory port."""

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import Axi4
from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import WORD_BITS, MemoryPort
from hdl.stream_buffer import StreamBuffer
from noc.crossbar import Crossbar

from .config import HOST_ADDRESS_BITS, HostConfig
from .read import HostRead
from .write import HostWrite, write_response


class HostData(Component):
    """Subordinate of an AXI4 bus for all of the chip's DRAM.

    Every burst of AXI4 is served: any length, kind, size and alignment, and strobes. A burst
    outside the DRAM is answered with DECERR. A burst that AXI does not have, or that the memory
    failed to serve in part, is answered with SLVERR (on a read, the beats of that part). Bursts of
    one kind are answered in their order, whatever their identifiers, and performed in this order
    where they meet in one column; between reads and writes in flight at the same time there is no
    order. A beat of reads and one of writes pass per cycle if the memory allows it. Reads and
    writes have half of the tags each, one per column.

    Parameters:
        config: of the host port.

    Members:
        axi (in, :class:`hdl.axi.Axi4`): from the host; 64 data bits, because the memory port moves
            no more per cycle.
        port (out, :class:`hdl.ports.MemoryPort` with ``address_bits`` and ``tag_bits``): to the
            memory; responses are always accepted.
    """

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        super().__init__(
            {
                "axi": In(
                    Axi4(
                        address_bits=HOST_ADDRESS_BITS,
                        data_bits=WORD_BITS,
                        id_bits=config.id_bits,
                    )
                ),
                "port": Out(MemoryPort(address_bits=config.address_bits, tag_bits=config.tag_bits)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        axi = self.axi
        read, write = HostRead(config), HostWrite(config)
        crossbar = Crossbar(
            requesters=2, address_bits=config.address_bits, tag_bits=config.tag_bits - 1
        )
        responses = StreamBuffer(shape=write_response(config))
        m.submodules.read = shared_instance(read, platform)
        m.submodules.write = shared_instance(write, platform)
        m.submodules["crossbar"] = shared_instance(crossbar, platform)
        m.submodules.responses = shared_instance(responses, platform)
        connect(m, read.port, crossbar.ports[0])
        connect(m, write.port, crossbar.ports[1])
        connect(m, crossbar.memory, flipped(self.port))
        connect(m, write.responses, responses.input)

        for channel, bursts in (("aw", write.bursts), ("ar", read.bursts)):
            m.d.comb += [
                bursts.valid.eq(getattr(axi, f"{channel}valid")),
                getattr(axi, f"{channel}ready").eq(bursts.ready),
                bursts.payload.id.eq(getattr(axi, f"{channel}id")),
                bursts.payload.address.eq(getattr(axi, f"{channel}addr")),
                bursts.payload.length.eq(getattr(axi, f"{channel}len")),
                bursts.payload.size.eq(getattr(axi, f"{channel}size")),
                bursts.payload.burst.eq(getattr(axi, f"{channel}burst")),
            ]
        m.d.comb += [
            write.beats.valid.eq(axi.wvalid),
            axi.wready.eq(write.beats.ready),
            write.beats.payload.data.eq(axi.wdata),
            write.beats.payload.strobe.eq(axi.wstrb),
            axi.bvalid.eq(responses.output.valid),
            responses.output.ready.eq(axi.bready),
            axi.bid.eq(responses.output.payload.id),
            axi.bresp.eq(responses.output.payload.response),
            axi.rvalid.eq(read.beats.valid),
            read.beats.ready.eq(axi.rready),
            axi.rid.eq(read.beats.payload.id),
            axi.rdata.eq(read.beats.payload.data),
            axi.rresp.eq(read.beats.payload.response),
            axi.rlast.eq(read.beats.payload.last),
        ]
        return m
