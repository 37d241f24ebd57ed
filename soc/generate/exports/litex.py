"""A LiteX module around a chip."""

from hdl.axi import Axi4Lite
from soc.host.config import BASE_BITS

from .exported import ExportedDesign

_MODULE = '''"""{title}, as a module of LiteX. Generated."""

from pathlib import Path

from litex.gen import LiteXModule
from litex.soc.interconnect import axi
from migen import ClockSignal, Instance, ResetSignal, Signal

_FOLDER = Path(__file__).resolve().parent
_SOURCES = [
{sources}]
_CHANNELS = {{
    "aw": ["id", "addr", "len", "size", "burst", "cache", "prot"],
    "w": ["data", "strb", "last"],
    "b": ["id", "resp"],
    "ar": ["id", "addr", "len", "size", "burst", "cache", "prot"],
    "r": ["id", "data", "resp", "last"],
}}


class {name}(LiteXModule):
    """{title}.

    To a SoC with a bus of 32-bit addresses:

        soc.vip = {name}(platform)
        region = SoCRegion(origin=ORIGIN, size=0x10_0000, cached=False)
        soc.bus.add_slave("vip", soc.vip.control, region)
        for n, memory in enumerate(soc.vip.memories):
            soc.bus.add_master(f"vip_memory_{{n}}", memory)

    Parameters:
        platform: gets the sources.
        bases: where each vault's memory is on the bus, a multiple of its size.

    Attributes:
        control: AXI4-Lite, registers and commands.
        data: AXI4, all of the memory from address 0 on; of no use where the processor reaches it.
        memories: AXI4, one per vault.
        interrupt: level, 1 while an enabled interrupt is pending.
    """

    def __init__(self, platform, bases=({bases},)):
        self.interrupt = Signal()
        self.memories = []
        ports = {{{clocks}, "o_host_interrupt": self.interrupt}}
{interfaces}        self.specials += Instance("{top}", **ports)
        for name in _SOURCES:
            platform.add_source(str(_FOLDER / name))

    def _axi(self, name, interface, address_bits, is_manager, base=0):
        """Ports ``name`` of the instance, connected to ``interface``."""
        ports = {{}}
        missing = {{"last"}} if isinstance(interface, axi.AXILiteInterface) else set()
        for channel, fields in _CHANNELS.items():
            endpoint = getattr(interface, channel)
            driven = is_manager == (channel in ("aw", "w", "ar"))
            for field in ["valid", "ready", *fields]:
                if field in missing or not hasattr(endpoint, field):
                    continue
                signal = getattr(endpoint, field)
                if field == "addr":
                    part = Signal(address_bits)
                    self.comb += signal.eq(base | part) if is_manager else part.eq(signal)
                    signal = part
                way = "o" if driven != (field == "ready") else "i"
                ports[f"{{way}}_{{name}}__{{channel}}{{field}}"] = signal
        return ports
'''


def litex_module(design: ExportedDesign) -> dict[str, str]:
    """A Python module with a class of LiteX.

    Raises:
        ExportError: the design has ports that are no AXI.
    """
    interfaces = ""
    bases: list[str] = []
    for port in design.axi_ports("LiteX"):
        signature = port.signature
        if isinstance(signature, Axi4Lite):
            new = "axi.AXILiteInterface(data_width=32, address_width=32)"
        else:
            bits = 32 if port.is_manager else signature.address_bits
            new = (
                f"axi.AXIInterface(data_width={signature.data_bits}, address_width={bits}, "
                f"id_width={signature.id_bits})"
            )
        size = signature.address_bits
        if port.is_manager:
            interfaces += (
                f"        self.memories.append({new})\n"
                f'        ports |= self._axi("{port.name}", self.memories[{len(bases)}], {size}, '
                f"True, bases[{len(bases)}])\n"
            )
            # Wider addresses begin at bases of registers.
            own = size < BASE_BITS
            bases.append(hex(len(bases) * design.vault_bytes if own else 0))
        else:
            interfaces += (
                f"        self.{port.name} = {new}\n"
                f'        ports |= self._axi("{port.name}", self.{port.name}, {size}, False)\n'
            )
    domains = ["", '"memory"']
    joined = ", ".join(
        f'"i_{name}": {("ClockSignal", "ResetSignal")[at % 2]}({domains[at // 2]})'
        for at, name in enumerate(design.clocks)
    )
    text = _MODULE.format(
        title=f"VIP {design.title}",
        name="".join(part.capitalize() for part in design.top.split("_")),
        top=design.top,
        sources="".join(f'    "{name}",\n' for name in design.sources),
        bases=", ".join(bases),
        clocks=joined,
        interfaces=interfaces,
    )
    return {f"{design.top}_litex.py": text}
