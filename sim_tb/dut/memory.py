"""The simulator of a vault's memory, with requesters and DRAM in C++."""

from typing import Any

from amaranth.hdl import Module, Signal

from hdl.emission import emit
from hdl.parameters import describe
from memory.config import VaultConfig
from memory.controller.controller import Controller
from sim_tb.harness.models import ARRAYS, MEMORIES, SLOW_RESET_CYCLES
from sim_tb.harness.traffic import REQUESTER, TRAFFIC
from sim_tb.runner.build import BuildError, Design, check_tools
from sim_tb.runner.cache import cached_verilog
from soc.tile.config import ClockConfig
from soc.tile.vault_memory import VaultMemory

from .top import Top, join, surrounded

#: Top module, which also names the executable.
TOP = "vip_vault_top"

#: Rooms whose source determines the memory's Verilog.
_SOURCES = ("hdl", "memory", "noc", "soc")
_DUT = "vault_memory"


class VaultTop(Top):
    """A vault's memory between requesters and DRAM."""

    name = TOP
    models = (TRAFFIC, REQUESTER)
    devices = True

    def __init__(
        self,
        config: VaultConfig,
        requesters: int,
        clocks: ClockConfig | None = None,
        line_buffer: int = 0,
    ) -> None:
        self.config = config
        self.requesters = requesters
        self.clocks = clocks
        self.line_buffer = line_buffer
        self.two_clocks = clocks is not None and clocks.two
        super().__init__()

    def surround(self, m: Module) -> Any:
        memory = self.design(
            m, _memory(self.config, self.requesters, self.clocks, self.line_buffer), _DUT
        )
        host = self.model(TRAFFIC)
        reset = host.reset
        if self.two_clocks:
            left = Signal(range(SLOW_RESET_CYCLES + 1), reset_less=True)
            with m.If(host.reset):
                m.d.sync += left.eq(SLOW_RESET_CYCLES)
            with m.Elif(left != 0):
                m.d.sync += left.eq(left - 1)
            reset = host.reset | (left != 0)
        for number, port in enumerate(memory.ports if self.requesters else [memory.port]):
            requester = self.model(REQUESTER, number)
            join(m, port, requester)
            m.d.comb += [
                requester.reset.eq(reset),
                requester.tags.eq(1 << port.signature.tag_bits),
            ]
        m.d.comb += [
            host.failed.eq(self.device(m, self.config, memory.dram)),
            memory.counter_index.eq(host.counter_index),
            host.counter_value.eq(memory.counter_value),
            self.idle.eq(host.idle),
        ]
        return reset


def _memory(
    config: VaultConfig, requesters: int, clocks: ClockConfig | None, line_buffer: int
) -> VaultMemory | Controller:
    if requesters:
        return VaultMemory(
            config=config, requesters=requesters, clocks=clocks, line_buffer=line_buffer
        )
    if clocks is not None and clocks.two:
        raise BuildError("a controller without a crossbar can't have two clocks")
    return Controller(config)


def ports_of(requesters: int) -> int:
    """Number of ports with ``requesters`` at the crossbar; 0: one directly at the controller."""
    return max(requesters, 1)


def vault_design(
    config: VaultConfig,
    requesters: int,
    clocks: ClockConfig | None = None,
    line_buffer: int = 0,
) -> Design:
    """The simulator of a vault's memory, with ``requesters`` at the crossbar, 1..16; 0: one
    directly at the controller.

    Parameters:
        clocks: of the memory at a crossbar; one by default. line_buffer: its lines there.

    Raises:
        BuildError: two clocks without a crossbar.
    """

    def emitted() -> str:
        check_tools()
        return "".join(
            emit(_memory(config, requesters, clocks, line_buffer), _DUT).modules.values()
        )

    identity = describe((config, requesters, clocks, line_buffer))
    verilog = cached_verilog(identity, _SOURCES, emitted)
    top = VaultTop(config, requesters, clocks, line_buffer)
    return surrounded(top, {"vault_memory.v": verilog}, support=(ARRAYS,), control=MEMORIES)
