"""Memories as black-box macros, named by their geometry, with a model and a stub of each.

An ASIC flow replaces the stub with a memory compiler's macro, or a wrapper of one. Ports of macro
``vip_sram_512x8_3r2w``: ``clk``, and for each read port ``r0_en r0_addr r0_data`` and each write
port ``w0_en w0_addr w0_data``, numbered; timing as in :class:`hdl.sram.SramReadPort`.
"""

import re
from dataclasses import dataclass

from support.errors import VipError

_NAME = re.compile(r"vip_sram_(\d+)x(\d+)_(\d+)r(\d+)w")


class MacroError(VipError):
    """A name that does not denote a memory macro."""


@dataclass(frozen=True, order=True)
class SramGeometry:
    """Shape of a memory: words, bits of a word, read and write ports."""

    depth: int
    width: int
    read_ports: int
    write_ports: int

    @classmethod
    def parse(cls, name: str) -> "SramGeometry":
        """The geometry of the macro called ``name``.

        Raises:
            MacroError: ``name`` is not a macro's name.
        """
        match = _NAME.fullmatch(name)
        if match is None:
            raise MacroError(f"{name!r} is not the name of a memory macro (vip_sram_DxW_RrWw)")
        return cls(*map(int, match.groups()))

    @property
    def name(self) -> str:
        """Name of the macro's module."""
        return f"vip_sram_{self.depth}x{self.width}_{self.read_ports}r{self.write_ports}w"

    @property
    def bits(self) -> int:
        """Bits stored."""
        return self.depth * self.width

    @property
    def address_bits(self) -> int:
        """Bits of a word address."""
        return (self.depth - 1).bit_length()


def _ports(geometry: SramGeometry, output: str) -> str:
    address, word = geometry.address_bits - 1, geometry.width - 1
    lines = ["input clk"]
    for port in range(geometry.read_ports):
        lines += [
            f"input r{port}_en",
            f"input [{address}:0] r{port}_addr",
            f"{output} [{word}:0] r{port}_data",
        ]
    for port in range(geometry.write_ports):
        lines += [
            f"input w{port}_en",
            f"input [{address}:0] w{port}_addr",
            f"input [{word}:0] w{port}_data",
        ]
    return ",\n".join(f"  {line}" for line in lines)


def macro_stub(geometry: SramGeometry) -> str:
    """Verilog of the macro without contents, for synthesis."""
    return (
        f"// {geometry.name}: memory macro, {geometry.bits} bits; for synthesis.\n"
        f"(* blackbox *)\n"
        f"module {geometry.name} (\n{_ports(geometry, 'output')}\n);\nendmodule\n"
    )


def macro_model(geometry: SramGeometry) -> str:
    """Verilog of the macro's behaviour, for simulation; contents start with 0."""
    body = []
    for port in range(geometry.write_ports):
        body.append(f"    if (w{port}_en) words[w{port}_addr] <= w{port}_data;\n")
    for port in range(geometry.read_ports):
        body.append(f"    if (r{port}_en) r{port}_data <= words[r{port}_addr];\n")
    return (
        f"// {geometry.name}: memory macro, {geometry.bits} bits; model for simulation.\n"
        f"module {geometry.name} (\n{_ports(geometry, 'output reg')}\n);\n"
        f"  reg [{geometry.width - 1}:0] words [0:{geometry.depth - 1}];\n"
        f"  integer word;\n"
        f"  initial\n"
        f"    for (word = 0; word < {geometry.depth}; word = word + 1)\n"
        f"      words[word] = {geometry.width}'d0;\n"
        f"  always @(posedge clk) begin\n{''.join(body)}  end\n"
        f"endmodule\n"
    )
