"""Top modules of simulations: a design and the models around it, connected by port names."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from inspect import getsource
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.cdc import ResetSynchronizer  # type: ignore[import-untyped]
from amaranth.lib.wiring import In, Out

from hdl.clocks import CLOCK_PORTS, ENGINE_DOMAIN, MEMORY_DOMAIN
from hdl.component import Component
from hdl.emission import emit, interface_only
from hdl.parameters import component_parameters, describe
from memory.config import VaultConfig
from memory.controller.dram_port import DramPort
from memory.model.device_model import DEVICE_SOURCES
from sim_tb.harness.models import Model, module, port_values
from sim_tb.runner.build import BuildError, Design
from sim_tb.runner.cache import cached_verilog

#: Formats of waveform files, by suffix.
TRACE_FORMATS = ("vcd", "fst")
#: Rooms whose source determines a top module.
_SOURCES = ("support", "isa", "hdl", "pe", "memory", "noc", "soc", "sim_tb")
_DEVICES = tuple(f"../../memory/model/{name}" for name in DEVICE_SOURCES)


class Top(Component, ABC):
    """A design with its models and a clock.

    Parameters:
        members: ports besides ``idle``, for an outer host.

    Members:
        idle: out; the models have nothing to do.

    Attributes:
        name: of the module and the simulator.
        models: the models around the design. devices: whether there are also DRAM devices.
        two_clocks: the memory has its own clock, :data:`hdl.clocks.MEMORY_DOMAIN`.
    """

    name: str
    models: tuple[Model, ...]
    devices = False
    two_clocks = False

    def __init__(self, members: Mapping[str, wiring.Member] | None = None) -> None:
        super().__init__({"idle": Out(1), **(members or {})})

    @abstractmethod
    def surround(self, m: Module) -> Any:
        """Add the design and its models to ``m``; returns their reset."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.instances: list[tuple[Model, int]] = []
        self.memory_instances: list[tuple[Model, int]] = []
        self._ports: dict[str, Value] = {}
        m.domains.sync = ClockDomain()
        reset = self.surround(m)
        m.d.comb += ResetSignal().eq(reset)
        if self.two_clocks:
            m.domains += ClockDomain(MEMORY_DOMAIN)
            m.submodules += ResetSynchronizer(reset, domain=MEMORY_DOMAIN)
            self._ports["o_clk_mem"] = ClockSignal(MEMORY_DOMAIN)
        m.submodules.models = Instance(
            f"{self.name}_models",
            o_clk=ClockSignal(),
            **self._ports,
        )
        return m

    @property
    def memory_domain(self) -> str:
        """Clock domain of the memory."""
        return MEMORY_DOMAIN if self.two_clocks else ENGINE_DOMAIN

    def model(self, model: Model, index: int = 0, *, memory: bool = False) -> Any:
        """An instance of ``model``: its ports as attributes. Models are called in each cycle in
        order of creation, those of the ``memory`` in each cycle of its clock."""
        of_memory = memory and self.two_clocks
        (self.memory_instances if of_memory else self.instances).append((model, index))
        ports = SimpleNamespace()
        for port in model.ports:
            signal = Signal(port.bits, name=f"{model.name}_{index}_{port.name}")
            setattr(ports, port.name, signal)
            self._ports[f"{'i' if port.is_input else 'o'}_{signal.name}"] = signal
        return ports

    def design(self, m: Module, component: Any, kind: str, name: str = "") -> Any:
        """An instance of the module ``kind``, which has the ports of ``component``."""
        connections: dict[str, Any] = {}
        for domain in dict.fromkeys([ENGINE_DOMAIN, self.memory_domain]):
            clock, reset = CLOCK_PORTS[domain]
            connections[f"i_{clock}"] = ClockSignal(domain)
            connections[f"i_{reset}"] = ResetSignal(domain)
        for path, member, signal in component.signature.flatten(component):
            value: Any = Value.cast(signal)
            # Waveforms and their readers rely on these names.
            value.attrs["keep"] = 1
            if len(value):
                flow = "i" if member.flow is In else "o"
                connections[f"{flow}_{'__'.join(map(str, path))}"] = value
        m.submodules[name or kind] = Instance(kind, **connections)
        return interface_only(component)

    def device(self, m: Module, config: VaultConfig, port: Any, index: int = 0) -> Value:
        """Add a vault's DRAM at ``port``, a ``DramPort``; returns whether a rule was broken."""
        failed = Signal(name=f"device_{index}_failed")
        connections: dict[str, Any] = {"o_failed": failed}
        for name, flow, value in port_values(DramPort(config), port):
            connections[f"{'i' if flow is Out else 'o'}_{name}"] = value
        m.submodules[f"device_{index}"] = Instance(
            "vip_dram_device",
            p_BANK_BITS=config.bank_bits,
            p_ROW_BITS=config.row_bits,
            p_COLUMN_BITS=config.column_bits,
            p_DEVICE=index,
            i_clk=ClockSignal(self.memory_domain),
            i_rst=ResetSignal(self.memory_domain),
            **connections,
        )
        return failed


def join(m: Module, interface: Any, ports: Any, prefix: str = "") -> None:
    """Connect each signal of a design's ``interface``, including fields of payloads, to the model's
    port of that name with ``prefix``. Widths may differ."""
    for name, flow, value in port_values(interface.signature, interface):
        port = getattr(ports, prefix + name)
        m.d.comb += port.eq(value) if flow is Out else value.eq(port)


def surrounded(
    top: Top,
    verilog: Mapping[str, str],
    *,
    control: str = "",
    support: tuple[str, ...] = (),
    **settings: Any,
) -> Design:
    """The design of the simulator with ``top``.

    Parameters:
        verilog: of the design inside. control, support, settings: additions; see
            :class:`sim_tb.runner.build.Design`.
    """

    def made() -> str:
        text = emit(top, top.name).modules[top.name]
        models = f"{top.name}_models"
        if not hasattr(top, "instances"):
            # This process has emitted an equal top module before, and did not elaborate this one.
            top.elaborate(None)
        return text + module(
            models, top.instances, top.memory_instances if top.two_clocks else None
        )

    # Cached text does not need it elaborated.
    interface_only(top)
    parameters = [f"{name}={describe(value)}" for name, value in component_parameters(top).items()]
    # Tests have top modules of their own, whose source is in none of these rooms.
    identity = " ".join([top.name, getsource(type(top)), *parameters])
    around = {f"{top.name}.sv": cached_verilog(identity, _SOURCES, made)}
    sources = dict.fromkeys(support)
    for model in top.models:
        around |= {
            f"vip_{model.name}.h": model.header,
            f"vip_{model.name}_ports.cpp": model.wrapper,
        }
        sources |= dict.fromkeys(model.sources)
    sources |= dict.fromkeys(_DEVICES if top.devices else ())
    return Design(
        top=top.name,
        verilog=verilog,
        around=around,
        support=tuple(sources),
        control=f'`verilator_config\npublic_flat_rd -module "{top.name}" -var "idle"\n{control}',
        **settings,
    )


def trace_format(trace: Path | None) -> str:
    """The format of a waveform file, from its ending; "" without a file.

    Raises:
        BuildError: it is not one of :data:`TRACE_FORMATS`.
    """
    name = trace.suffix.lstrip(".") or "?" if trace else ""
    if name and name not in TRACE_FORMATS:
        raise BuildError(f"waveforms are written as {' or '.join(TRACE_FORMATS)}, not {name!r}")
    return name
