"""A vault's memory: crossbar for all requesters, and back end."""

from enum import IntEnum
from typing import Any

from amaranth.hdl import Const, DomainRenamer, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Member, Out, connect, flipped

from hdl.clocks import MEMORY_DOMAIN
from hdl.component import Component
from hdl.config import ConfigurationError
from hdl.counter_bank import COUNTER_BITS
from hdl.emission import shared_instance
from hdl.ports import MemoryPort, memory_request, memory_response
from hdl.stream_buffer import StreamBuffer
from memory.axi.backend import AxiBackend
from memory.axi.counters import AXI_COUNTERS
from memory.axi.layout import AxiConfig
from memory.config import VaultConfig
from memory.controller.controller import Controller
from memory.controller.counters import INDEX_BITS, VaultCounter
from memory.controller.dram_port import DramPort
from memory.crossing import CounterMirror, MemoryCrossing
from memory.line_buffer.layout import LineCounter, check_lines
from memory.line_buffer.line_buffer import LineBuffer
from memory.on_chip import OnChipConfig, RegisteredMemory
from memory.preload import Preload
from noc.crossbar import MAX_REQUESTERS, Crossbar

from .config import ClockConfig, VaultBackEnd, VaultTileConfig


def memory_member(config: VaultBackEnd) -> dict[str, Member]:
    """The member that connects a vault to its memory.

    It is ``dram`` (out, :class:`memory.controller.dram_port.DramPort`) or ``axi`` (out,
    :class:`hdl.axi.Axi4`); memory on the chip has none.
    """
    if isinstance(config, OnChipConfig):
        return {}
    if isinstance(config, AxiConfig):
        return {"axi": Out(config.bus)}
    return {"dram": Out(DramPort(config))}


def memory_counters(config: VaultBackEnd, *, line_buffer: int) -> tuple[IntEnum, ...]:
    """The counters of a vault's memory with a line buffer of ``line_buffer`` lines."""
    if not config.counters:
        return ()
    names = AXI_COUNTERS if isinstance(config, AxiConfig) else tuple(VaultCounter)
    return (*names, *LineCounter) if line_buffer else names


class VaultMemory(Component):
    """Serves several requesters from one vault's DRAM (thesis 5.2), or from an AXI bus; a range of
    the addresses from a :class:`memory.preload.Preload`, if ``config`` has one, or all of them from
    memory on the chip.

    Requesters have the guarantees of :class:`noc.crossbar.Crossbar` and, by the type of
    ``config``, of :class:`memory.controller.controller.Controller`,
    :class:`memory.axi.backend.AxiBackend` or :class:`memory.on_chip.RegisteredMemory`, the last
    between registers that add a cycle each way. The crossbar adds two cycles to the latency of the
    latter, a line buffer two more.

    Parameters:
        config: of the back end; its ``tag_bits`` are a requester's and those that number the
            requesters.
        requesters: 1..16.
        always_ready: see :class:`noc.crossbar.Crossbar`.
        line_buffer: lines of a :class:`memory.line_buffer.line_buffer.LineBuffer` between crossbar
            and back end; 0: there is none.
        line_merges: see :func:`memory.line_buffer.layout.check_lines`.
        clocks: with two, the back end and its port have the second
            (:class:`memory.crossing.MemoryCrossing`), and its counters are read from copies
            (:class:`memory.crossing.CounterMirror`).

    Members:
        ports (in, ``requesters`` :class:`hdl.ports.MemoryPort` with ``tag_bits``): of the
            requesters.
        dram or axi: see :func:`memory_member`.
        counter_index (in, INDEX_BITS): :class:`memory.controller.counters.VaultCounter` or
            :class:`memory.line_buffer.layout.LineCounter` to read.
        counter_value (out, COUNTER_BITS): one cycle after ``counter_index``.

    Attributes:
        tag_bits: tag width of each requester.

    Raises:
        ConfigurationError: ``requesters`` outside its range, or the tags of ``config`` too narrow
            to number them.
        hdl.config.ConfigurationError: a parameter of the line buffer outside its range.
    """

    def __init__(
        self,
        *,
        config: VaultBackEnd,
        requesters: int,
        always_ready: int = 0,
        line_buffer: int = 0,
        line_merges: int = 4,
        clocks: ClockConfig | None = None,
    ) -> None:
        if not 1 <= requesters <= MAX_REQUESTERS:
            raise ConfigurationError(
                f"a vault has 1 to {MAX_REQUESTERS} requesters, not {requesters!r}"
            )
        self.config = config
        self.requesters = requesters
        check_lines(line_buffer, line_merges)
        self.always_ready = always_ready
        self.line_buffer = line_buffer
        self.line_merges = line_merges
        self.clocks = ClockConfig() if clocks is None else clocks
        self.tag_bits = config.tag_bits - (requesters - 1).bit_length()
        if self.tag_bits < 1:
            raise ConfigurationError(
                f"tag_bits must be at least {(requesters - 1).bit_length() + 1} for {requesters} "
                f"requesters, not {config.tag_bits}"
            )
        port = MemoryPort(address_bits=config.request_address_bits, tag_bits=self.tag_bits)
        super().__init__(
            {
                "ports": In(port).array(requesters),
                **memory_member(config),
                "counter_index": In(INDEX_BITS),
                "counter_value": Out(COUNTER_BITS),
            }
        )

    @classmethod
    def of_tile(cls, tile: VaultTileConfig, *, beyond_node: bool = False) -> "VaultMemory":
        """The memory of ``tile``; ``beyond_node``: a node of a network is between it and the
        engines, which are not always ready then."""
        return cls(
            config=tile.vault,
            requesters=tile.requesters,
            always_ready=0 if beyond_node else tile.always_ready,
            line_buffer=tile.line_buffer,
            line_merges=tile.line_merges,
            clocks=tile.clocks,
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        crossbar = Crossbar(
            requesters=self.requesters,
            address_bits=self.config.request_address_bits,
            tag_bits=self.tag_bits,
            always_ready=self.always_ready,
        )
        m.submodules["crossbar"] = shared_instance(crossbar, platform)
        value: Value
        if isinstance(self.config, OnChipConfig):
            memory, value = self._on_chip(m, self.config, platform), Const(0, COUNTER_BITS)
        else:
            memory, value = self._outside(m, self.config, platform)
        if self.line_buffer:
            value = self._line_buffer(m, crossbar, memory, value, platform)
        else:
            connect(m, crossbar.memory, memory)
        for mine, theirs in zip(self.ports, crossbar.ports, strict=True):
            connect(m, flipped(mine), theirs)
        m.d.comb += self.counter_value.eq(value)
        return m

    def _on_chip(self, m: Module, config: OnChipConfig, platform: object) -> Any:
        """The port of memory on the chip, behind registers."""
        memory = RegisteredMemory(
            size=config.bytes,
            address_bits=config.address_bits,
            tag_bits=config.tag_bits,
            sram=config.sram,
        )
        port = MemoryPort(address_bits=config.address_bits, tag_bits=config.tag_bits)
        outer = port.flip().create(path=("on_chip",))
        requests = StreamBuffer(shape=memory_request(config.address_bits, config.tag_bits))
        responses = StreamBuffer(shape=memory_response(config.tag_bits))
        m.submodules.on_chip = shared_instance(memory, platform)
        m.submodules.requests = shared_instance(requests, platform)
        m.submodules.responses = shared_instance(responses, platform)
        connect(m, flipped(outer.request), requests.input)
        connect(m, requests.output, memory.port.request)
        connect(m, memory.port.response, responses.input)
        connect(m, responses.output, flipped(outer.response))
        return outer

    def _outside(
        self, m: Module, config: VaultConfig | AxiConfig, platform: object
    ) -> tuple[Any, Value]:
        """The port of the memory outside, and of a part of it inside, and the value of the counter
        that is read."""
        back_end: Controller | AxiBackend
        if isinstance(config, AxiConfig):
            back_end = AxiBackend(config)
            m.submodules.axi_backend = self._clocked(back_end, platform)
            connect(m, flipped(self.axi), back_end.axi)
        else:
            back_end = Controller(config)
            m.submodules.controller = self._clocked(back_end, platform)
            connect(m, flipped(self.dram), back_end.dram)
        index: Value = self.counter_index
        value: Value = back_end.counter_value
        memory = back_end.port
        if self.clocks.two:
            memory = self._cross(m, memory, platform)
            if config.counters:
                mirror = CounterMirror(sram=config.sram)
                m.submodules.mirror = shared_instance(mirror, platform)
                m.d.comb += [mirror.index.eq(index), mirror.counter_value.eq(value)]
                index, value = mirror.counter_index, mirror.value
        m.d.comb += back_end.counter_index.eq(index)
        if config.preload_bytes:
            preload = Preload(
                size=config.preload_bytes,
                base=config.preload_base,
                address_bits=config.request_address_bits,
                tag_bits=config.tag_bits,
                sram=config.sram,
            )
            m.submodules.preload = shared_instance(preload, platform)
            connect(m, preload.memory, memory)
            memory = preload.port
        return memory, value

    def _clocked(self, back_end: Controller | AxiBackend, platform: object) -> Any:
        """``back_end`` as a submodule with its clock."""
        part = shared_instance(back_end, platform)
        return DomainRenamer(MEMORY_DOMAIN)(part) if self.clocks.two else part

    def _cross(self, m: Module, memory: Any, platform: object) -> Any:
        """A port with the engines' clock for ``memory``, one with the memory's."""
        crossing = MemoryCrossing(
            address_bits=self.config.request_address_bits,
            tag_bits=self.config.tag_bits,
            request_depth=self.clocks.request_depth,
            response_depth=self.clocks.response_depth,
        )
        m.submodules.crossing = shared_instance(crossing, platform)
        connect(m, crossing.memory, memory)
        return crossing.port

    def _line_buffer(
        self,
        m: Module,
        crossbar: Crossbar,
        memory: Any,
        value: Value,
        platform: object,
    ) -> Value:
        """Put a line buffer before ``memory``, a port. Returns the value of the counter that is
        read: ``value`` if it is not one of the line buffer's."""
        config = self.config
        buffer = LineBuffer(
            lines=self.line_buffer,
            merges=self.line_merges,
            address_bits=config.request_address_bits,
            memory_bits=config.address_bits,
            tag_bits=config.tag_bits,
            counters=config.counters,
            sram=config.sram,
        )
        m.submodules.line_buffer = shared_instance(buffer, platform)
        connect(m, crossbar.memory, buffer.port)
        connect(m, buffer.memory, memory)
        m.d.comb += buffer.counter_index.eq(self.counter_index)
        of_lines = Signal()
        m.d.sync += of_lines.eq(
            (self.counter_index >= min(LineCounter)) & (self.counter_index <= max(LineCounter))
        )
        return Mux(of_lines, buffer.counter_value, value)
