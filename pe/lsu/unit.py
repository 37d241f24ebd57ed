"""Load-store unit: moves data between memory and scratchpad or registers."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.emission import once
from hdl.ports import MemoryPort
from hdl.priority import lowest_one
from hdl.sram import Sram
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.frontend.arc import arrival, release
from pe.ports import ScratchpadReadPort, ScratchpadWritePort

from .ports import FAILURE, load_store_command, load_table_entry, loaded_register
from .request import LoadStoreRequest
from .response import LoadStoreResponse

__all__ = ["LoadStore"]


class LoadStore(Component):
    """Transfers cut into requests of one DRAM column, many in flight, answered in any order.

    A table indexed by the requests' tags says what each response is for (thesis 5.1; 7.1.3 has an
    SRAM of 64 words of 32 bits in this place).

    Requests leave in program order, so that the memory keeps the order of accesses to one column.
    The first request of a command leaves three cycles after the command.

    Members:
        command: stream of :func:`pe.lsu.ports.load_store_command`, in.
        memory: :class:`hdl.ports.MemoryPort`, out.
        read, write: scratchpad ports, out.
        arrived, arrived_entry, released, released_entry: out, for :class:`pe.frontend.arc.Arc`.
        result_valid, result_index, result: out; value for a register. result_ready: in.
        error: out; the memory answered with an error. unfit: out; a value loaded is too large for
            its register, which does not get it.
        idle: out; every accepted command is complete, writes acknowledged.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "command": In(stream.Signature(load_store_command(config))),
                "memory": Out(
                    MemoryPort(address_bits=config.address_bits, tag_bits=config.tag_bits)
                ),
                "read": Out(ScratchpadReadPort(config)),
                "write": Out(ScratchpadWritePort(config)),
                **arrival(config).outputs(),
                **release(config).outputs(),
                **loaded_register(config).outputs(),
                "result_ready": In(1),
                **FAILURE.outputs(),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        if not Capabilities.of(config).memory:
            m.d.comb += self.idle.eq(1)
            return m
        request = LoadStoreRequest(config)
        response = LoadStoreResponse(config)
        layout = load_table_entry(config)
        table = Sram(
            # Without loads, a response needs nothing but its tag.
            width=max(1, layout.size),
            depth=config.load_store_queue,
            read_ports=1,
            write_ports=1,
            kind=config.sram,
        )
        m.submodules.request = once(request, platform)
        m.submodules.response = once(response, platform)
        m.submodules.table = once(table, platform)
        connect(m, flipped(self.command), request.command)
        connect(m, flipped(self.read), request.read)
        connect(m, flipped(self.memory.request), request.request)
        connect(m, flipped(self.memory.response), response.response)
        connect(m, flipped(self.write), response.write)
        (table_read,) = table.read
        (table_write,) = table.write
        m.d.comb += [
            table_write.enable.eq(request.table_write),
            table_write.address.eq(request.table_tag),
            table_write.data.eq(request.table_entry),
            table_read.enable.eq(response.lookup),
            table_read.address.eq(response.lookup_tag),
            response.entry.eq(table_read.data[: layout.size]),
        ]
        arrival(config).join(m, response, self)
        release(config).join(m, request, self)
        loaded_register(config).join(m, response, self)
        m.d.comb += response.result_ready.eq(self.result_ready)
        FAILURE.join(m, response, self)

        # Free tags; the next one to hand out is chosen a cycle ahead.
        free = Signal(config.load_store_queue, init=-1)
        take = Signal()
        m.d.comb += take.eq(free.any() & (~request.tag_ready | request.tag_taken))
        chosen = Signal(config.tag_bits)
        m.d.comb += chosen.eq(lowest_one(free))
        ready = Signal()
        tag = Signal(config.tag_bits)
        m.d.comb += [request.tag_ready.eq(ready), request.tag.eq(tag)]
        with m.If(request.tag_taken):
            m.d.sync += ready.eq(0)
        with m.If(take):
            m.d.sync += [ready.eq(1), tag.eq(chosen), free.bit_select(chosen, 1).eq(0)]
        with m.If(response.freed):
            m.d.sync += free.bit_select(response.freed_tag, 1).eq(1)

        outstanding = Signal(range(config.load_store_queue + 1))
        with m.If(request.tag_taken & ~response.freed):
            m.d.sync += outstanding.eq(outstanding + 1)
        with m.If(~request.tag_taken & response.freed):
            m.d.sync += outstanding.eq(outstanding - 1)
        m.d.comb += self.idle.eq(request.idle & response.idle & (outstanding == 0))
        return m
