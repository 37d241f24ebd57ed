"""Packaging a chip as a kernel for Vitis, whose host drives the registers itself ("user-managed").

Properties, and the parameter that joins a register to a bus: UG1393, "Packaging the RTL Code as a
Vitis XO". No Vitis has read the script.
"""

from soc.host.config import BASE_BITS
from soc.host.register_map import CHIP, MAP_ADDRESS_BITS

from .exported import ExportedDesign, ExportError
from .vivado import vivado_ip


def vitis_kernel(design: ExportedDesign) -> dict[str, str]:
    """The files for Vivado, and a script that makes a kernel of its IP.

    Raises:
        ExportError: the design has ports that are no AXI, or a data port.
    """
    files = vivado_ip(design)
    ports = design.axi_ports("Vitis")
    if len([port for port in ports if not port.is_manager]) > 1:
        raise ExportError(
            "the design has a data port, a kernel for Vitis registers alone: set host_data in "
            'its configuration to "none"'
        )
    managers = [port.label for port in ports if port.is_manager]
    bases = "\n".join(
        f"  {label} {CHIP.address('BASE_LOW', vault):#x}" for vault, label in enumerate(managers)
    )
    name = f"{design.top}_ip"
    script = f"""\
# Makes {name}.xo of VIP's {design.title}: vivado -mode batch -source package_kernel.tcl
set kernel_folder [file dirname [file normalize [info script]]]
source [file join $kernel_folder package_ip.tcl]
set core [ipx::open_core [file join $kernel_folder ip component.xml]]
set_property sdx_kernel true $core
set_property sdx_kernel_type rtl $core
set_property ipi_drc {{ignore_freq_hz true}} $core
set_property vitis_drc {{ctrl_protocol user_managed}} $core
# The registers with the base of each memory join its buffers to its bus.
ipx::add_memory_map s_axi_control $core
set control [ipx::get_bus_interfaces s_axi_control -of_objects $core]
set_property slave_memory_map_ref s_axi_control $control
set map [ipx::get_memory_maps s_axi_control -of_objects $core]
set block [ipx::add_address_block registers $map]
set_property range {1 << MAP_ADDRESS_BITS:#x} $block
foreach {{bus offset}} {{
{bases}
}} {{
  set base [ipx::add_register ${{bus}}_base $block]
  set_property address_offset $offset $base
  set_property size {BASE_BITS} $base
  set_property value $bus [ipx::add_register_parameter ASSOCIATED_BUSIF $base]
}}
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity -kernel $core
ipx::save_core $core
package_xo -force -kernel_name {name} -ctrl_protocol user_managed \\
  -ip_directory [file join $kernel_folder ip] -xo_path [file join $kernel_folder {name}.xo]
"""
    return files | {"package_kernel.tcl": script}
