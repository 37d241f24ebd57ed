"""Memories as black-box macros, named by their geometry, with a model and a stub of each.

An ASIC flow replaces the stub with a memory compiler's macro, or a wrapper of one. Ports of macro
``vip_sram_512x8_3r2w``: ``clk``, and for each read port ``r0_en r0_addr r0_data`` and each write
port ``w0_en w0_addr w0_data``, numbered; timing as in :class:`hdl.sram.SramReadPort`. Those of
``vip_sram_256x8_2rw``, whose ports read or write: ``rw0_en rw0_write rw0_addr rw0_word rw0_data``,
as in :class:`hdl.sram.SramSharedPort`.
"""

import re
from dataclasses import dataclass

from support.errors import VipError

_NAME = re.compile(r"vip_sram_(\d+)x(\d+)_(?:(\d+)r(\d+)w|(\d+)rw)")


class MacroError(VipError):
    """A name that does not denote a memory macro."""


@dataclass(frozen=True, order=True)
class SramGeometry:
    """Shape of a memory: words, bits of a word, read and write ports, or shared ones instead, each
    of which reads or writes in a cycle."""

    depth: int
    width: int
    read_ports: int
    write_ports: int
    shared_ports: int = 0

    @classmethod
    def parse(cls, name: str) -> "SramGeometry":
        """The geometry of the macro called ``name``.

        Raises:
            MacroError: ``name`` is not a macro's name.
        """
        match = _NAME.fullmatch(name)
        if match is None:
            raise MacroError(
                f"{name!r} is not the name of a memory macro (vip_sram_DxW_RrWw, or ..._Srw)"
            )
        return cls(*(int(number or 0) for number in match.groups()))

    @property
    def name(self) -> str:
        """Name of the macro's module."""
        ports = f"{self.read_ports}r{self.write_ports}w"
        if self.shared_ports:
            ports = f"{self.shared_ports}rw"
        return f"vip_sram_{self.depth}x{self.width}_{ports}"

    @property
    def ports(self) -> int:
        """Ports of all kinds."""
        return self.read_ports + self.write_ports + self.shared_ports

    @property
    def pins(self) -> tuple[tuple[str, int, bool, bool], ...]:
        """Name, bits, whether it is a vector and whether it is an output, of each pin except the
        clock, port by port: reading, writing, shared ones."""
        address, word = self.address_bits, self.width
        kinds = (
            ("r", self.read_ports, (("en", 1), ("addr", address), ("data", word))),
            ("w", self.write_ports, (("en", 1), ("addr", address), ("data", word))),
            (
                "rw",
                self.shared_ports,
                (("en", 1), ("write", 1), ("addr", address), ("word", word), ("data", word)),
            ),
        )
        return tuple(
            (
                f"{kind}{port}_{pin}",
                bits,
                pin not in ("en", "write"),
                kind != "w" and pin == "data",
            )
            for kind, ports, pins in kinds
            for port in range(ports)
            for pin, bits in pins
        )

    @property
    def bits(self) -> int:
        """Bits stored."""
        return self.depth * self.width

    @property
    def address_bits(self) -> int:
        """Bits of a word address."""
        return (self.depth - 1).bit_length()


def _ports(geometry: SramGeometry, output: str) -> str:
    lines = ["input clk"]
    for name, bits, is_vector, is_output in geometry.pins:
        span = f"[{bits - 1}:0] " if is_vector else ""
        lines.append(f"{output if is_output else 'input'} {span}{name}")
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
    for port in range(geometry.shared_ports):
        body += [
            f"    if (rw{port}_en && rw{port}_write) words[rw{port}_addr] <= rw{port}_word;\n",
            f"    if (rw{port}_en && !rw{port}_write) rw{port}_data <= words[rw{port}_addr];\n",
        ]
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
