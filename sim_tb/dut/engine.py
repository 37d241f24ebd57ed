"""The simulator of one processing engine: its Verilog and its environment, both cached."""

import json
from typing import Any

from amaranth.hdl import Module

from hdl.sram_macro import SramGeometry, macro_model
from pe.config import PeConfig
from pe.core import Pe
from sim_tb.harness.engine import HOST, WATCH_CONTROL
from sim_tb.harness.memory import MEMORY
from sim_tb.harness.models import MEMORIES
from sim_tb.runner.build import Design, check_tools
from sim_tb.runner.cache import cached_verilog
from soc.generate.designs import Configuration
from soc.generate.generate import verilog
from soc.generate.presets import configuration_json

from .top import Top, join, surrounded

#: Top module, which also names the executable.
TOP = "vip_pe_top"
#: Reports how much of an engine is in use at once.
_WATCH = "pe_watch.sv"
#: Rooms whose source determines the Verilog.
_SOURCES = ("support", "isa", "hdl", "pe", "memory", "noc", "soc")


class EngineTop(Top):
    """An engine between a host and a memory."""

    name = TOP
    models = (HOST, MEMORY)

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__()

    def surround(self, m: Module) -> Any:
        pe = self.design(m, Pe(self.config), "pe")
        host, memory = self.model(HOST), self.model(MEMORY)
        join(m, pe.memory, memory)
        join(m, pe.control, host)
        join(m, pe.identity, host)
        m.d.comb += [
            memory.reset.eq(host.reset),
            host.failed.eq(memory.failed),
            host.in_flight.eq(memory.in_flight),
            self.idle.eq(host.idle),
        ]
        return host.reset


def engine_design(
    config: PeConfig,
    trace: str = "",
    *,
    netlist: str = "",
    ports_only: bool = False,
    watched: bool = False,
) -> Design:
    """The design of an engine's simulator.

    Parameters:
        config: of the engine.
        trace: "" or one of :data:`sim_tb.dut.top.TRACE_FORMATS`.
        netlist: SystemVerilog of the top module ``pe`` and all modules below, to simulate instead
            of that of ``config``.
        ports_only: waveforms contain only the engine's ports, which are in the scope :data:`TOP`.
        watched: results report how much of the engine was in use at once; it must have loads or
            stores of the scratchpad.
    """
    return surrounded(
        EngineTop(config),
        {"pe.sv": netlist or configuration_verilog(config)},
        support=(_WATCH,) if watched else (),
        control=WATCH_CONTROL if watched else MEMORIES,
        trace=trace,
        trace_levels=int(ports_only),
    )


def configuration_verilog(config: Configuration) -> str:
    """All Verilog of ``config``, cached until the source that generates it changes."""

    def made() -> str:
        # It is new, so a simulator must be built: check the tools before the work.
        check_tools()
        emission = verilog(config)
        macros = [macro_model(SramGeometry.parse(name)) for name in emission.black_boxes]
        return "".join([*macros, *emission.modules.values()])

    return cached_verilog(json.dumps(configuration_json(config), sort_keys=True), _SOURCES, made)
