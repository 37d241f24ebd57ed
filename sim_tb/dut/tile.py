"""The simulator of a vault with its engines, with models of hosts and DRAM in C++."""

from pathlib import Path
from typing import Any

from amaranth.hdl import Cat, Module

from sim_tb.harness.engine import HOST
from sim_tb.harness.tile import TILE
from sim_tb.runner.build import Design, build
from soc.tile.config import VaultTileConfig
from soc.tile.tile import VaultTile

from .engine import configuration_verilog
from .top import Top, check_trace, join, surrounded

#: Top module, which also names the executable.
TOP = "vip_tile_top"


class TileTop(Top):
    """A vault with its engines, between hosts and DRAM."""

    name = TOP
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


def build_tile(config: VaultTileConfig, trace: str = "") -> Path:
    """The folder of the simulator of a vault with its engines; see
    :func:`sim_tb.runner.build.build`.

    Parameters:
        config: of the vault and its engines.
        trace: "" or the format of waveform files that it can write.

    Raises:
        BuildError: as :func:`sim_tb.runner.build.build`, or there is no such format.
    """
    check_trace(trace)
    return build(tile_design(config, trace))


def tile_design(config: VaultTileConfig, trace: str = "") -> Design:
    """The design that :func:`build_tile` builds."""
    verilog = {"vault_tile.v": configuration_verilog(config)}
    return surrounded(TileTop(config), verilog, trace=trace)
