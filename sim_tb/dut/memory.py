"""The simulator of a vault's memory between requesters and DRAM, all but the memory in C++."""

from pathlib import Path
from typing import Any

from amaranth.hdl import Module

from hdl.emission import emit
from memory.config import VaultConfig
from memory.controller.controller import Controller
from sim_tb.harness.traffic import REQUESTER, TRAFFIC
from sim_tb.runner.build import Design, build, check_tools
from sim_tb.runner.cache import kept_verilog
from soc.tile.vault_memory import VaultMemory

from .top import Top, join, surrounded

__all__ = ["TOP", "build_vault", "ports_of", "vault_design"]

#: Top module, and so the executable's name.
TOP = "vip_vault_top"

#: Rooms whose source decides the memory's Verilog.
_SOURCES = ("hdl", "memory", "noc", "soc")
_DUT = "vault_memory"


class VaultTop(Top):
    """A vault's memory between requesters and DRAM."""

    name = TOP
    models = (TRAFFIC, REQUESTER)
    devices = True

    def __init__(self, config: VaultConfig, requesters: int) -> None:
        self.config = config
        self.requesters = requesters
        super().__init__()

    def surround(self, m: Module) -> Any:
        memory = self.design(m, _memory(self.config, self.requesters), _DUT)
        host = self.model(TRAFFIC)
        for number, port in enumerate(memory.ports if self.requesters else [memory.port]):
            requester = self.model(REQUESTER, number)
            join(m, port, requester)
            m.d.comb += [
                requester.reset.eq(host.reset),
                requester.tags.eq(1 << port.signature.tag_bits),
            ]
        m.d.comb += [
            host.failed.eq(self.device(m, self.config, memory.dram)),
            memory.counter_index.eq(host.counter_index),
            host.counter_value.eq(memory.counter_value),
            self.idle.eq(host.idle),
        ]
        return host.reset


def _memory(config: VaultConfig, requesters: int) -> VaultMemory | Controller:
    return VaultMemory(config=config, requesters=requesters) if requesters else Controller(config)


def ports_of(requesters: int) -> int:
    """Ports of a design with ``requesters``, of which 0 means one straight at the controller."""
    return max(requesters, 1)


def build_vault(config: VaultConfig, requesters: int) -> Path:
    """The folder of the simulator of a vault's memory; see :func:`sim_tb.runner.build.build`.

    Parameters:
        config: of the vault.
        requesters: at the crossbar, 1..16; 0: one straight at the controller.

    Raises:
        BuildError: as :func:`sim_tb.runner.build.build`.
        hdl.config.ConfigurationError: more requesters than a crossbar has, or than the tags number.
    """
    return build(vault_design(config, requesters))


def vault_design(config: VaultConfig, requesters: int) -> Design:
    """The design that :func:`build_vault` builds."""

    def made() -> str:
        check_tools()
        return "".join(emit(_memory(config, requesters), _DUT).modules.values())

    verilog = kept_verilog(f"{config} {requesters}", _SOURCES, made)
    return surrounded(VaultTop(config, requesters), {"vault_memory.v": verilog})
