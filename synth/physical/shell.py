"""A shell for placing and routing a module alone: registers at its ports, five pins.

A processing engine has some 600 port bits, more than a package has pins, and a path from a pin
says nothing about the module. In the shell a register drives every input and takes every output, so
that each path of the module counts, also from port to port, and no logic of the module can be
optimised away. The input registers are one long shift register from a pin; the outputs' registers
are copied, on ``capture``, into another one that leads to a pin.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from synth.errors import SynthesisError

__all__ = ["SHELL", "UNIT", "Port", "ports_of", "shell_ffs", "shell_verilog"]

#: Name of the shell's module, and of the instance of the module in it.
SHELL = "vip_shell"
UNIT = "unit"

_PORT = re.compile(r"^\s*(input|output)\s+(?:signed\s+)?(?:\[(\d+):0\]\s+)?(\w+)\s*;", re.MULTILINE)
_CLOCK, _RESET = "clk", "rst"


@dataclass(frozen=True)
class Port:
    """A port of a module: its name, its width in bits, and whether it is an input."""

    name: str
    width: int
    is_input: bool


def ports_of(name: str, text: str) -> tuple[Port, ...]:
    """Ports of module ``name`` in the emitted Verilog ``text``, in its order.

    Raises:
        SynthesisError: there is no such module.
    """
    start = re.search(rf"^module {re.escape(name)}\b", text, re.MULTILINE)
    if start is None:
        raise SynthesisError(f"there is no module {name!r} in the Verilog that is to hold it")
    body = text[start.start() :]
    return tuple(
        Port(port, int(high or 0) + 1, direction == "input")
        for direction, high, port in _PORT.findall(body[: body.index("endmodule")])
    )


def _sides(ports: Sequence[Port]) -> tuple[list[Port], list[Port]]:
    inputs = [port for port in ports if port.is_input and port.name not in (_CLOCK, _RESET)]
    return inputs, [port for port in ports if not port.is_input]


def shell_ffs(ports: Sequence[Port]) -> int:
    """Flip-flops that the shell of a module with ``ports`` adds to it."""
    inputs, outputs = _sides(ports)
    reset = any(port.name == _RESET for port in ports)
    return sum(p.width for p in inputs) + 2 * sum(p.width for p in outputs) + reset


def shell_verilog(name: str, ports: Sequence[Port]) -> str:
    """Verilog of module :data:`SHELL` around module ``name``, which it instantiates as
    :data:`UNIT`.

    Parameters:
        name: of the module. ports: its ports; ``clk`` and ``rst``, where it has them, are clock and
            reset.

    Raises:
        SynthesisError: the module has no input or no output to be timed.
    """
    inputs, outputs = _sides(ports)
    if not inputs or not outputs:
        raise SynthesisError(f"module {name!r} needs an input and an output to be timed")
    connections = []
    for wire, side in (("given", inputs), ("result", outputs)):
        low = 0
        for port in side:
            connections.append(f".{port.name}({wire}[{low + port.width - 1}:{low}])")
            low += port.width
    names = {port.name for port in ports}
    if _CLOCK in names:
        connections.append(f".{_CLOCK}(clk)")
    reset = ""
    if _RESET in names:
        connections.append(f".{_RESET}(reset)")
        reset = "  reg reset;\n  always @(posedge clk) reset <= rst;\n"
    wide = sum(port.width for port in inputs)
    out = sum(port.width for port in outputs)
    given = f"{{given[{wide - 2}:0], shift_in}}" if wide > 1 else "shift_in"
    chain = f"{{chain[{out - 2}:0], 1'b0}}" if out > 1 else "1'b0"
    return (
        f"module {SHELL}(input clk, input rst, input shift_in, input capture, output shift_out);\n"
        f"  reg [{wide - 1}:0] given;\n"
        f"  wire [{out - 1}:0] result;\n"
        f"  reg [{out - 1}:0] taken;\n"
        f"  reg [{out - 1}:0] chain;\n"
        f"{reset}"
        f"  assign shift_out = chain[{out - 1}];\n"
        f"  always @(posedge clk) begin\n"
        f"    given <= {given};\n"
        f"    taken <= result;\n"
        f"    chain <= capture ? taken : {chain};\n"
        f"  end\n"
        f"  {name} {UNIT} (\n    " + ",\n    ".join(connections) + "\n  );\nendmodule\n"
    )
