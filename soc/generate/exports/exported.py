"""A design as other tools see it: its files, and its AXI interfaces."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from amaranth.hdl import Shape
from amaranth.lib import wiring

from hdl.axi import Axi4, Axi4Lite
from support.errors import VipError


class ExportError(VipError):
    """A design that a tool can't connect; the message gives the reason."""


class AxiPort(NamedTuple):
    """An AXI interface of a design.

    Attributes:
        name: beginning of its ports in the Verilog, without the two underscores before a signal.
        label: name in block designs: ``s_axi_control``, ``m_axi_0``.
        is_manager: whether the design is the manager (the master).
        signature: seen from the manager.
    """

    name: str
    label: str
    is_manager: bool
    signature: Axi4 | Axi4Lite

    def signals(self) -> Iterator[tuple[str, bool, int]]:
        """Name of each signal, whether it is an input of the design, and its bits."""
        for name, member in self.signature.members.items():
            is_input = (member.flow == wiring.In) == self.is_manager
            yield name, is_input, Shape.cast(member.shape).width


class ExportedDesign(NamedTuple):
    """A design and its Verilog, for other tools.

    Attributes:
        component: the design.
        top: its module.
        title: what it is, in a line.
        version: of the generator.
        sources: Verilog files, models of memory macros first.
        header: Verilog file with constants of the ports, to be included.
        clocks: clock ports, each with its reset.
        vault_bytes: of each vault's memory.
    """

    component: "wiring.Component[Any]"
    top: str
    title: str
    version: str
    sources: Sequence[str]
    header: str
    clocks: Sequence[str]
    vault_bytes: int

    def axi_ports(self, tool: str) -> tuple[AxiPort, ...]:
        """The AXI interfaces of a chip whose memories are on AXI, by vault, for ``tool``.

        Raises:
            ExportError: the design has other interfaces.
        """
        ports: list[AxiPort] = []
        for name, member in self.component.signature.members.items():
            if not member.is_signature:
                continue
            signature = member.signature
            while isinstance(signature, wiring.FlippedSignature):
                signature = signature.flip()
            if not isinstance(signature, Axi4 | Axi4Lite) or len(member.dimensions) > 1:
                raise ExportError(
                    f"the design has a port `{name}` that is no AXI: {tool} connects chips with "
                    "their memory on AXI, such as the preset fpga"
                )
            is_manager = member.flow == wiring.Out
            for number in range(*member.dimensions or (1,)):
                begin, label = (f"{name}__{number}", number) if member.dimensions else (name, name)
                prefix = "m_axi" if is_manager else "s_axi"
                ports.append(AxiPort(begin, f"{prefix}_{label}", is_manager, signature))
        if not any(port.is_manager for port in ports):
            raise ExportError(f"the design has no AXI to a memory, which {tool} would connect")
        return tuple(ports)
