"""A core file of FuseSoC (CAPI2) for a generated directory."""

from .exported import ExportedDesign


def fusesoc_core(design: ExportedDesign) -> dict[str, str]:
    """The core file. Its target ``lint`` runs Verilator with the waivers."""
    listed = "".join(f"      - {name}\n" for name in design.sources)
    text = f"""CAPI=2:
name: vip:inference:{design.top}:{design.version}
description: VIP {design.title}

filesets:
  rtl:
    files:
{listed}      - {design.header}: {{is_include_file: true}}
    file_type: verilogSource-2005
  waivers:
    files: [waivers.vlt]
    file_type: vlt

targets:
  default: &default
    filesets: [rtl]
    toplevel: {design.top}
  lint:
    <<: *default
    filesets: [waivers, rtl]
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
"""
    return {f"{design.top}.core": text}
