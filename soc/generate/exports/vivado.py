"""Packaging a chip for Vivado: a wrapper whose ports name their interfaces, a script that makes IP
of it, and the same as IP-XACT. No Vivado has read them.

Attributes: UG994, "List of Supported X_ Attributes"; IP-XACT: IEEE 1685-2009.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from xml.etree import ElementTree

from hdl.axi import Axi4

from .exported import AxiPort, ExportedDesign

#: Bits of addresses of memories: any of a processor's.
_ADDRESS_BITS = 64
_SPIRIT = "http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009"
_AXI = ("interface", "aximm", "1.0")

#: Elements of XML: tag -> text, elements, or a list of such; after an ``@`` an attribute.
_Tree = Mapping[str, Any]


class _WrapperPort(NamedTuple):
    """A port of the wrapper, and the bus interface and logical name that it has there."""

    name: str
    is_input: bool
    bits: int
    bus: str
    logical: str


class _Bus(NamedTuple):
    """A bus interface of the wrapper: library, name and version of its kind, and parameters."""

    name: str
    kind: tuple[str, str, str]
    mode: str
    parameters: dict[str, str]


def vivado_ip(design: ExportedDesign) -> dict[str, str]:
    """Wrapper, script and IP-XACT that package a chip.

    Raises:
        ExportError: the design has ports that are no AXI.
    """
    package = _Package(design)
    return {
        f"{package.name}.v": package.wrapper(),
        "package_ip.tcl": package.script(),
        "component.xml": package.ip_xact(),
    }


class _Package:
    def __init__(self, design: ExportedDesign) -> None:
        self._design = design
        self.name = f"{design.top}_ip"
        self._sources = [*design.sources, f"{self.name}.v"]
        self._axi = design.axi_ports("Vivado")
        managers = [port for port in self._axi if port.is_manager]
        self._bases = {
            port.name: (f"{port.label.upper()}_BASE", number * design.vault_bytes)
            for number, port in enumerate(managers)
            if port.signature.address_bits < _ADDRESS_BITS
        }
        #: Suffix of the wrapper's clock -> the design's clock and reset.
        pairs = zip(design.clocks[::2], design.clocks[1::2], strict=True)
        self._domains = dict(zip(("", "_mem"), pairs, strict=False))

    def _address_bits(self, port: AxiPort) -> int:
        return _ADDRESS_BITS if port.is_manager else port.signature.address_bits

    def _buses(self) -> Iterator[_Bus]:
        two = len(self._domains) == 2
        for suffix in self._domains:
            # With two clocks the memories have the second.
            joined = [
                port.label for port in self._axi if not two or port.is_manager == bool(suffix)
            ]
            reset = f"aresetn{suffix}"
            parameters = {"ASSOCIATED_BUSIF": ":".join(joined), "ASSOCIATED_RESET": reset}
            yield _Bus(f"aclk{suffix}", ("signal", "clock", "1.0"), "slave", parameters)
            yield _Bus(reset, ("signal", "reset", "1.0"), "slave", {"POLARITY": "ACTIVE_LOW"})
        yield _Bus(
            "interrupt", ("signal", "interrupt", "1.0"), "master", {"SENSITIVITY": "LEVEL_HIGH"}
        )
        for port in self._axi:
            parameters = {
                "PROTOCOL": "AXI4LITE",
                "DATA_WIDTH": str(port.signature.data_bits),
                "ADDR_WIDTH": str(self._address_bits(port)),
            }
            if isinstance(port.signature, Axi4):
                parameters |= {"PROTOCOL": "AXI4", "ID_WIDTH": str(port.signature.id_bits)}
            yield _Bus(port.label, _AXI, "master" if port.is_manager else "slave", parameters)

    def _ports(self) -> Iterator[_WrapperPort]:
        for suffix in self._domains:
            yield _WrapperPort(f"aclk{suffix}", True, 1, f"aclk{suffix}", "CLK")
            yield _WrapperPort(f"aresetn{suffix}", True, 1, f"aresetn{suffix}", "RST")
        yield _WrapperPort("interrupt", False, 1, "interrupt", "INTERRUPT")
        for port in self._axi:
            for name, is_input, bits in port.signals():
                wide = self._address_bits(port) if name.endswith("addr") else bits
                yield _WrapperPort(f"{port.label}_{name}", is_input, wide, port.label, name.upper())

    def wrapper(self) -> str:
        parameters = ",\n".join(
            f"  parameter [{_ADDRESS_BITS - 1}:0] {name} = {_ADDRESS_BITS}'h{base:x}"
            for name, base in self._bases.values()
        )
        parameters = f"#(\n{parameters}\n) " if parameters else ""
        buses = {bus.name: bus for bus in self._buses()}
        declared: list[str] = []
        first = dict(reversed([(port.bus, port) for port in self._ports()]))
        for port in self._ports():
            bus = buses[port.bus]
            if port == first[port.bus]:
                pairs = [("XIL_INTERFACENAME", bus.name), *bus.parameters.items()]
                text = ", ".join(" ".join(pair) for pair in pairs)
                declared.append(f'(* X_INTERFACE_PARAMETER = "{text}" *)')
            kind = ":".join(bus.kind)
            declared.append(
                f'(* X_INTERFACE_INFO = "xilinx.com:{kind} {bus.name} {port.logical}" *)'
            )
            width = f"[{port.bits - 1}:0] " if port.bits > 1 else ""
            declared.append(f"{'input' if port.is_input else 'output'} {width}{port.name},")
        declared[-1] = declared[-1].removesuffix(",")
        body, joined = [], [".host_interrupt(interrupt)"]
        for suffix, (clock, reset) in self._domains.items():
            body += [
                f"reg {reset};",
                f"always @(posedge aclk{suffix}) {reset} <= !aresetn{suffix};",
            ]
            joined += [f".{clock}(aclk{suffix})", f".{reset}({reset})"]
        for axi in self._axi:
            for name, _, bits in axi.signals():
                outer = inner = f"{axi.label}_{name}"
                if axi.name in self._bases and name.endswith("addr"):
                    inner = f"{outer}_in_vault"
                    base = self._bases[axi.name][0]
                    zeros = f"{{{_ADDRESS_BITS - bits}'b0, {inner}}}"
                    body += [f"wire [{bits - 1}:0] {inner};", f"assign {outer} = {base} | {zeros};"]
                joined.append(f".{axi.name}__{name}({inner})")
        indent = ",\n    ".join
        return (
            f"// VIP {self._design.title}: the ports name their interfaces for Vivado. Generated.\n"
            "// A base is where a vault's memory is for the interconnect, a multiple of its size.\n"
            "// verilator lint_off SYMRSVDWORD\n"
            f"module {self.name} {parameters}(\n  "
            + "\n  ".join(declared)
            + "\n);\n  "
            + "\n  ".join(body)
            + f"\n  {self._design.top} chip_instance (\n    {indent(joined)}\n  );\nendmodule\n"
        )

    def script(self) -> str:
        sources = "\n".join(f"  {name}" for name in self._sources)
        return f"""\
# Makes IP of VIP's {self._design.title}: vivado -mode batch -source package_ip.tcl
# The result is in ip/, to be added to the IP repositories of a project.
set folder [file dirname [file normalize [info script]]]
create_project -force package_ip $folder/package_ip
foreach name {{
{sources}
}} {{ add_files -norecurse [file join $folder $name] }}
set_property top {self.name} [current_fileset]
update_compile_order -fileset sources_1
ipx::package_project -root_dir $folder/ip -vendor vip -library inference \\
  -taxonomy /UserIP -import_files -force
set core [ipx::current_core]
set_property name {self.name} $core
set_property version {self._design.version.rpartition(".")[0] or self._design.version} $core
set_property display_name {{VIP {self._design.top}}} $core
set_property description {{VIP {self._design.title}}} $core
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity $core
ipx::save_core $core
close_project
"""

    def ip_xact(self) -> str:
        ElementTree.register_namespace("spirit", _SPIRIT)
        view = {
            "name": "verilog",
            "envIdentifier": "verilog:synthesis",
            "language": "verilog",
            "modelName": self.name,
            "fileSetRef": {"localName": "rtl"},
        }
        parameters = [{"name": name, "value": f"0x{base:x}"} for name, base in self._bases.values()]
        files = [{"name": name, "fileType": "verilogSource"} for name in self._sources]
        component = ElementTree.Element(f"{{{_SPIRIT}}}component")
        _add(
            component,
            {
                "vendor": "vip",
                "library": "inference",
                "name": self.name,
                "version": self._design.version,
                "busInterfaces": {"busInterface": [*map(self._interface, self._buses())]},
                "model": {
                    "views": {"view": view},
                    "ports": {"port": [*map(_port, self._ports())]},
                    "modelParameters": {"modelParameter": parameters},
                },
                "fileSets": {"fileSet": {"name": "rtl", "file": files}},
                "description": f"VIP {self._design.title}",
            },
        )
        ElementTree.indent(component)
        return ElementTree.tostring(component, "unicode", xml_declaration=True) + "\n"

    def _interface(self, bus: _Bus) -> _Tree:
        """A bus interface in IP-XACT."""
        library, name, version = bus.kind
        names = {"@vendor": "xilinx.com", "@library": library, "@name": name, "@version": version}
        joined = [
            {"logicalPort": {"name": port.logical}, "physicalPort": {"name": port.name}}
            for port in self._ports()
            if port.bus == bus.name
        ]
        parameters = [{"name": key, "value": value} for key, value in bus.parameters.items()]
        return {
            "name": bus.name,
            "busType": names,
            "abstractionType": names | {"@name": f"{name}_rtl"},
            bus.mode: {},
            "portMaps": {"portMap": joined},
            "parameters": {"parameter": parameters},
        }


def _port(port: _WrapperPort) -> _Tree:
    """A port of the wrapper in IP-XACT."""
    direction, vector = "in" if port.is_input else "out", {"left": f"{port.bits - 1}", "right": "0"}
    return {"name": port.name, "wire": {"direction": direction, "vector": vector}}


def _add(parent: ElementTree.Element, tree: _Tree) -> None:
    """Add elements and attributes of IP-XACT to ``parent``."""
    for tag, content in tree.items():
        if tag.startswith("@"):
            parent.set(f"{{{_SPIRIT}}}{tag[1:]}", content)
            continue
        for part in content if isinstance(content, list) else [content]:
            element = ElementTree.SubElement(parent, f"{{{_SPIRIT}}}{tag}")
            if isinstance(part, str):
                element.text = part
            else:
                _add(element, part)
