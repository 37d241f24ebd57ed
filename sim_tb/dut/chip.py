"""The simulators of a vault with its engines and of a chip, with models of hosts and DRAM."""

from typing import Any

from amaranth.hdl import Cat, ClockSignal, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.emission import interface_only
from memory.axi.layout import AxiConfig
from sim_tb.harness.chip import AXI_MEMORY, CHIP
from sim_tb.harness.engine import HOST
from sim_tb.harness.models import port_values
from sim_tb.harness.tile import TILE
from sim_tb.runner.build import Design
from soc.chip.chip import Chip
from soc.chip.config import ChipConfig
from soc.tile.config import VaultTileConfig
from soc.tile.tile import VaultTile

from .engine import configuration_verilog
from .top import Top, join, surrounded

#: Top module of a chip, which also names the executable.
TOP = "vip_chip_top"

#: Modules that are compiled once for all their instances; engines only if a tile has many, since a
#: tile with few runs faster as a whole.
_BLOCK = "chip_tile"
_INNER_BLOCK = "pe"
_MANY_ENGINES = 5
#: Maximum engines of a chip whose waveforms show everything: more take minutes to compile.
TRACED_ENGINES = 16
_BUSES = ("control", "data")


class TileTop(Top):
    """A vault with its engines, between hosts and DRAM."""

    name = "vip_tile_top"
    models = (HOST, TILE)
    devices = True

    def __init__(self, config: VaultTileConfig) -> None:
        self.config = config
        super().__init__()

    def surround(self, m: Module) -> Any:
        config = self.config
        tile = self.design(m, VaultTile(config), "vault_tile")
        hosts = [self.model(HOST, slot) for slot in range(config.pes)]
        control = self.model(TILE)
        failed = self.device(m, config.dram, tile.dram)
        for host, port in zip(hosts, tile.control, strict=True):
            join(m, port, host)
            m.d.comb += host.failed.eq(failed)
        m.d.comb += [
            control.launched.eq(Cat(p.launch.valid & p.launch.ready for p in tile.control).any()),
            control.engines_idle.eq(Cat(host.idle for host in hosts).all()),
            tile.counter_index.eq(control.counter_index),
            control.counter_value.eq(tile.counter_value),
            tile.pe_count.eq(config.pes),
            self.idle.eq(control.idle),
        ]
        return Cat(host.reset for host in hosts).any()


def tile_design(config: VaultTileConfig, trace: str = "") -> Design:
    """The design of the simulator of a vault with its engines; ``trace`` as for
    :func:`chip_design`."""
    verilog = {"vault_tile.v": configuration_verilog(config)}
    return surrounded(TileTop(config), verilog, trace=trace)


class ChipTop(Top):
    """A chip between DRAM and two hosts: a model in C++, and an outer one.

    Members:
        external: in; the outer host drives the buses, and its clock runs; may change only while the
            clock is 1. external_clk: out; its clock.
        control_*, data_*: signals of the buses, seen from the chip, with the names that bus models
            expect.
    """

    name = TOP

    def __init__(self, config: ChipConfig) -> None:
        self.config = config
        self.on_axi = isinstance(config.tile.vault, AxiConfig)
        self.models = (CHIP, AXI_MEMORY) if self.on_axi else (CHIP,)
        self.devices = not self.on_axi
        self.two_clocks = config.tile.clocks.two
        self._chip = interface_only(Chip(config))
        buses = {
            f"{bus}_{name}": wiring.Member(flow, len(value))
            for bus in _BUSES
            for name, flow, value in self._bus(bus)
        }
        super().__init__({"external": In(1), "external_clk": Out(1), **buses})

    def _bus(self, bus: str) -> list[tuple[str, wiring.Flow, Value]]:
        interface = getattr(self._chip, bus)
        return list(port_values(interface.signature, interface))

    def surround(self, m: Module) -> Any:
        chip = self.design(m, self._chip, "chip")
        host = self.model(CHIP)
        for bus in _BUSES:
            for name, flow, value in self._bus(bus):
                outer, inner = (getattr(end, f"{bus}_{name}") for end in (self, host))
                if flow is In:
                    m.d.comb += value.eq(Mux(self.external, outer, inner))
                    continue
                # The outer host samples and drives between two edges, and must see the values that
                # matched its own at the previous edge.
                seen = Signal(len(value), reset_less=True)
                m.d.sync += seen.eq(value)
                m.d.comb += [inner.eq(value), outer.eq(seen)]
        if self.on_axi:
            for vault, axi in enumerate(chip.axi):
                memory = self.model(AXI_MEMORY, vault, memory=True)
                join(m, axi, memory)
                reset = ResetSignal(self.memory_domain) if self.two_clocks else host.reset
                m.d.comb += memory.reset.eq(reset)
        else:
            failed = [
                self.device(m, self.config.tile.dram, port, vault)
                for vault, port in enumerate(chip.dram)
            ]
            m.d.comb += host.failed.eq(Cat(failed).any())
        m.d.comb += [
            host.host_interrupt.eq(chip.host_interrupt),
            self.external_clk.eq(~ClockSignal() & self.external),
            self.idle.eq(host.idle),
        ]
        return host.reset


def chip_design(config: ChipConfig, trace: str = "") -> Design:
    """The design of a chip's simulator.

    Tiles are compiled once (Verilator's hierarchical Verilation), so build time and memory hardly
    depend on their number.

    Parameters:
        config: of the chip.
        trace: "" or the format of waveform files that it can write. With more than
            :data:`TRACED_ENGINES` engines, waveforms show only the signals between tiles.
    """
    return surrounded(
        ChipTop(config),
        {"chip.v": configuration_verilog(config)},
        control="".join(
            f'public_flat_{access} -module "{TOP}" -var "{names}"\n'
            for access, names in (
                ("rd", "clk"),
                ("rw", "external*"),
                ("rw", "control_*"),
                ("rw", "data_*"),
            )
        ),
        trace=trace,
        blocks=_blocks(config, trace),
    )


def _blocks(config: ChipConfig, trace: str) -> tuple[str, ...]:
    """Modules that are compiled once. Waveforms don't show their insides, so a small chip with
    waveforms is compiled as a whole."""
    if trace and config.pes <= TRACED_ENGINES:
        return ()
    return (_BLOCK, _INNER_BLOCK) if config.tile.pes >= _MANY_ENGINES else (_BLOCK,)
