"""A small chip for tests of the host port: tiles with real engines, and one memory for all."""

from dataclasses import replace
from typing import Any

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import Axi4, Axi4Lite
from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import WORD_BITS, MemoryPort, memory_request, memory_response
from hdl.stream_buffer import StreamBuffer
from isa.table import INSTRUCTIONS, Unit
from noc.crossbar import Crossbar
from pe.core import Pe
from soc.generate.presets import preset
from soc.host.config import HOST_ADDRESS_BITS, HostConfig
from soc.host.control import HostControl
from soc.host.data import HostData
from soc.host.register_map import MAP_ADDRESS_BITS
from soc.tile.control import TileControl

COLUMN_WORD_BITS = 2


def small(
    columns: int = 2, rows: int = 1, pes: int = 2, vault_address_bits: int = 14, tag_bits: int = 4
) -> HostConfig:
    """A configuration with engines as the preset ``pe-small``, but without a vector unit, which has
    nothing to do with the host and takes time to build."""
    vault_bits = (columns * rows - 1).bit_length()
    pe = replace(
        preset("pe-small"),
        address_bits=vault_address_bits + vault_bits,
        instructions=frozenset(
            row.key for row in INSTRUCTIONS if row.unit is not Unit.VECTOR and row.key != "set.ws"
        ),
    )
    return HostConfig(
        pe=pe,
        columns=columns,
        rows=rows,
        pes=pes,
        vault_address_bits=vault_address_bits,
        network_counters=5,
        tag_bits=tag_bits,
    )


class PlainMemory(Component):
    """Serves one port in order, a word a cycle; the last column fails, a read after as many beats
    as the low bits of its tag say."""

    def __init__(self, *, address_bits: int, tag_bits: int) -> None:
        self.address_bits = address_bits
        self.tag_bits = tag_bits
        super().__init__({"port": In(MemoryPort(address_bits=address_bits, tag_bits=tag_bits))})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        requests = StreamBuffer(shape=memory_request(self.address_bits, self.tag_bits))
        responses = StreamBuffer(shape=memory_response(self.tag_bits), depth=4)
        m.submodules.requests = shared_instance(requests, platform)
        m.submodules.responses = shared_instance(responses, platform)
        connect(m, flipped(self.port.request), requests.input)
        connect(m, responses.output, flipped(self.port.response))
        words = Memory(shape=WORD_BITS, depth=1 << self.address_bits - 3, init=[])
        m.submodules.words = words
        write, read = words.write_port(granularity=8), words.read_port()
        request: Any = requests.output.payload
        count = Signal(COLUMN_WORD_BITS)
        failing = request.address[5:].all()
        take = Signal()
        fetching: Any = Signal(memory_response(self.tag_bits))
        fetched = Signal()
        address = request.address[3:] + count
        short = failing & (count == request.tag[:COLUMN_WORD_BITS])
        last = Mux(request.write, request.last, short | (count == request.words))
        m.d.comb += [
            take.eq(requests.output.valid & (responses.level + fetched < 3)),
            requests.output.ready.eq(take & (request.write | last)),
            write.addr.eq(address),
            write.data.eq(request.data),
            write.en.eq(Mux(take & request.write & ~failing, request.strobe, 0)),
            read.addr.eq(address),
            read.en.eq(take),
            responses.input.valid.eq(fetched),
            responses.input.payload.eq(fetching),
            responses.input.payload.data.eq(read.data),
        ]
        m.d.sync += [
            fetched.eq(take & (~request.write | request.last)),
            fetching.tag.eq(request.tag),
            fetching.last.eq(last),
            fetching.error.eq(failing),
        ]
        with m.If(take & ~request.write):
            m.d.sync += count.eq(Mux(last, 0, count + 1))
        return m


class HostDut(Component):
    """A host port, a ring of tiles with engines, and a memory."""

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        super().__init__(
            {
                "data": In(
                    Axi4(address_bits=HOST_ADDRESS_BITS, data_bits=64, id_bits=config.id_bits)
                ),
                "control": In(Axi4Lite(address_bits=MAP_ADDRESS_BITS)),
                "host_interrupt": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        requesters = config.pe_count + 1
        tag_bits = max(config.pe.tag_bits, config.tag_bits)
        crossbar = Crossbar(
            requesters=requesters, address_bits=config.address_bits, tag_bits=tag_bits
        )
        memory = PlainMemory(address_bits=config.address_bits, tag_bits=crossbar.memory_tag_bits)
        control, data = HostControl(config), HostData(config)
        m.submodules.crossbar = shared_instance(crossbar, platform)
        m.submodules.memory = shared_instance(memory, platform)
        m.submodules.control = shared_instance(control, platform)
        m.submodules.data = shared_instance(data, platform)
        connect(m, crossbar.memory, memory.port)
        connect(m, flipped(self.control), control.axi)
        connect(m, flipped(self.data), data.axi)
        m.d.comb += self.host_interrupt.eq(control.host_interrupt)
        _join(m, data.port, crossbar.ports[0])
        link = control.first
        for vault in range(config.vaults):
            tile = TileControl(pe=config.pe, pes=config.pes)
            m.submodules[f"tile_{vault}"] = shared_instance(tile, platform)
            connect(m, link, tile.input)
            link = tile.output
            # Counters whose values identify them.
            m.d.comb += [
                tile.vault.eq(vault),
                tile.first_pe.eq(vault * config.pes),
                tile.vault_counter_value.eq(tile.vault_counter_index | vault << 33),
                tile.network_counter_value.eq(tile.network_counter_index | vault << 34),
            ]
            for slot in range(config.pes):
                pe = Pe(config.pe)
                number = vault * config.pes + slot
                m.submodules[f"pe_{number}"] = shared_instance(pe, platform)
                connect(m, tile.control[slot], pe.control)
                _join(m, pe.memory, crossbar.ports[1 + number])
                m.d.comb += [
                    pe.identity.vault.eq(vault),
                    pe.identity.slot.eq(slot),
                    pe.identity.pe_index.eq(number),
                    pe.identity.pe_count.eq(config.pe_count),
                ]
        connect(m, link, control.last)
        return m


def _join(m: Module, port: Any, crossbar: Any) -> None:
    """Connect a requester whose tags may be narrower than the crossbar's."""
    for name, _ in port.request.payload.shape():
        m.d.comb += crossbar.request.payload[name].eq(port.request.payload[name])
    for name, _ in port.response.payload.shape():
        m.d.comb += port.response.payload[name].eq(crossbar.response.payload[name])
    m.d.comb += [
        crossbar.request.valid.eq(port.request.valid),
        port.request.ready.eq(crossbar.request.ready),
        port.response.valid.eq(crossbar.response.valid),
        crossbar.response.ready.eq(port.response.ready),
    ]
