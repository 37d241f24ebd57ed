"""Load-store unit: moves data between memory and scratchpad or registers."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component, Probes
from hdl.emission import shared_instance
from hdl.ports import MemoryPort
from hdl.priority import lowest_one, set_flags
from hdl.sram import Sram
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.extensions.history import FENCED, HISTORY_EVENTS, column_record, overwriting
from pe.extensions.units import link_members
from pe.extensions.workspace import declared, declaring, growth, workspace_bounds
from pe.ports import (
    FAILURE,
    ScratchpadReadPort,
    ScratchpadWritePort,
    arrival,
    load_store_command,
    loaded_register,
    release,
)

from .declaration import Declaration
from .history import History
from .lowering import Lowering
from .ports import load_table_entry
from .request import LoadStoreRequest
from .response import LoadStoreResponse


class LoadStore(Component):
    """Transfers cut into requests of one DRAM column, many in flight, answered in any order.

    A table indexed by request tag tells what each response is for (thesis 5.1; 7.1.3 has an SRAM of
    64 words of 32 bits in this place).

    Requests leave in program order, so the memory preserves the order of accesses to one column.
    A command's first request leaves three cycles after the command.

    Members:
        command: stream of :func:`pe.ports.load_store_command`, in.
        memory: :class:`hdl.ports.MemoryPort`, out.
        read, write: scratchpad ports, out.
        arrived, arrived_entry, released, released_entry: out, for :class:`pe.frontend.arc.Arc`.
        result_valid, result_index, result: out; value for a register. result_ready: in.
        error: out; the memory answered with an error. overflow: out; a value loaded is too large
            for its register, which does not get it.
        idle: out; every accepted command is complete, writes acknowledged.

    Extensions have further members (:meth:`pe.extensions.extension.LsuExtension.links`).
    """

    probes = Probes(
        "outstanding",
        "read__address",
        "read__data",
        "read__enable",
        "table",
        "tag_ready",
        "write__0__address",
        "write__address",
        "write__data",
        "write__strobe",
    )

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
                **link_members(config, "load_store"),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        if not Capabilities.of(config).memory:
            m.d.comb += self.idle.eq(self._declares_alone(m, platform) if config.workspace else 1)
            return m
        request = LoadStoreRequest(config)
        response = LoadStoreResponse(config)
        layout = load_table_entry(config)
        table = Sram(
            # Without loads, only a response's tag matters.
            width=max(1, layout.size),
            depth=config.load_store_queue,
            read_ports=1,
            write_ports=1,
            kind=config.sram,
        )
        m.submodules.request = shared_instance(request, platform)
        m.submodules.response = shared_instance(response, platform)
        m.submodules.table = shared_instance(table, platform)
        idle: Value | None = None
        if config.workspace:
            idle = self._workspace(m, request, response, platform)
        else:
            connect(m, flipped(self.command), request.command)
            connect(m, flipped(self.memory.request), request.request)
            connect(m, flipped(self.memory.response), response.response)
            connect(m, flipped(self.read), request.read)
            FAILURE.join(m, response, self)
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
            m.d.sync += [ready.eq(1), tag.eq(chosen)]
        set_flags(m, free, ((take, chosen, False), (response.freed, response.freed_tag, True)))

        outstanding = Signal(range(config.load_store_queue + 1))
        with m.If(request.tag_taken & ~response.freed):
            m.d.sync += outstanding.eq(outstanding + 1)
        with m.If(~request.tag_taken & response.freed):
            m.d.sync += outstanding.eq(outstanding - 1)
        quiet = request.idle & response.idle & (outstanding == 0)
        m.d.comb += self.idle.eq(quiet if idle is None else quiet & idle)
        return m

    def _declaration(self, m: Module, platform: object) -> Declaration:
        """What declares a workspace, joined to all but the memory and ``error``."""
        declaration = Declaration(self.config)
        m.submodules.declaration = shared_instance(declaration, platform)
        declaring(self.config).join(m, self, declaration)
        declared().join(m, declaration, self)
        workspace_bounds(self.config).join(m, declaration, self)
        return declaration

    def _declares_alone(self, m: Module, platform: object) -> Value:
        """A workspace without loads and stores: only descriptors are read; returns whether it is
        idle."""
        declaration = self._declaration(m, platform)
        connect(m, declaration.request, flipped(self.memory.request))
        connect(m, declaration.response, flipped(self.memory.response))
        m.d.comb += self.error.eq(declaration.error)
        return Value.cast(~declaration.busy)

    def _workspace(
        self,
        m: Module,
        request: LoadStoreRequest,
        response: LoadStoreResponse,
        platform: object,
    ) -> Value:
        """The declaration of a workspace, which has exclusive use of the memory, and the lowering
        of loads from its window; returns whether both are idle."""
        config = self.config
        declaration = self._declaration(m, platform)
        lowering = Lowering(config)
        m.submodules.lowering = shared_instance(lowering, platform)
        growth(config).join(m, request, self)
        connect(m, flipped(self.command), lowering.command)
        idle = Cat(lowering.idle, ~declaration.busy)
        settled: Value = request.settled
        if config.load_history:
            history = self._history(m, lowering, request, response, platform)
            idle, settled = Cat(idle, history.idle), settled & history.idle
        else:
            connect(m, lowering.piece, request.command)
            connect(m, lowering.fill, response.fill)
            connect(m, flipped(self.read), request.read)
        m.d.comb += [
            lowering.geometry.eq(declaration.geometry),
            lowering.fresh.eq(declaration.busy),
            lowering.settled.eq(settled),
            self.error.eq(response.error | declaration.error),
            self.overflow.eq(response.overflow),
        ]
        memory = self.memory
        m.d.comb += [
            memory.request.valid.eq(request.request.valid | declaration.request.valid),
            memory.request.payload.eq(request.request.payload),
            request.request.ready.eq(memory.request.ready),
            declaration.request.ready.eq(memory.request.ready),
            response.response.payload.eq(memory.response.payload),
            declaration.response.payload.eq(memory.response.payload),
            response.response.valid.eq(memory.response.valid & ~declaration.busy),
            declaration.response.valid.eq(memory.response.valid & declaration.busy),
            memory.response.ready.eq(
                Mux(declaration.busy, declaration.response.ready, response.response.ready)
            ),
        ]
        with m.If(declaration.busy):
            m.d.comb += memory.request.payload.eq(declaration.request.payload)
        return idle.all()

    def _history(
        self,
        m: Module,
        lowering: Lowering,
        request: LoadStoreRequest,
        response: LoadStoreResponse,
        platform: object,
    ) -> History:
        """The copying of columns within the scratchpad, between ``lowering`` and ``request``."""
        config = self.config
        history = History(config)
        m.submodules.history = shared_instance(history, platform)
        connect(m, lowering.piece, history.command)
        connect(m, history.piece, request.command)
        column_record(config).join(m, response, history)
        overwriting(config).join(m, self, history)
        FENCED.join(m, self, history)
        HISTORY_EVENTS.join(m, history, self)
        m.d.comb += [
            history.declare.eq(self.declare),
            history.settled.eq(request.settled),
            history.unread.eq(request.unread),
            # Either of them waits for the other.
            response.fill.valid.eq(history.fill.valid | lowering.fill.valid),
            response.fill.payload.eq(
                Mux(history.fill.valid, history.fill.payload, lowering.fill.payload)
            ),
            history.fill.ready.eq(response.fill.ready),
            lowering.fill.ready.eq(response.fill.ready & ~history.fill.valid),
            # Stores are read while nothing is copied.
            self.read.enable.eq(request.read.enable | history.read.enable),
            self.read.address.eq(
                Mux(history.read.enable, history.read.address, request.read.address)
            ),
            request.read.data.eq(self.read.data),
            history.read.data.eq(self.read.data),
        ]
        return history
