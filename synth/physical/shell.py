"""A shell for placing and routing a module by itself, with registers at its ports and five pins.

A processing engine has about 600 port bits, more than a package has pins, and a path from a pin
says nothing about the module. In the shell a register drives every input and another stores every
output, so each path of the module counts, even from port to port, and none of its logic can be
optimised away. The input registers form a long shift register from a pin; ``capture`` copies the
output registers into another one that leads to a pin. With two clocks, the ports of each clock
domain have such registers with their own pins.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hdl.clocks import CLOCK_PORTS, ENGINE_DOMAIN, MEMORY_DOMAIN
from synth.errors import SynthesisError

#: Names of the shell's module and of the module's instance in it.
SHELL = "vip_shell"
UNIT = "unit"

_PORT = re.compile(r"^\s*(input|output)\s+(?:signed\s+)?(?:\[(\d+):0\]\s+)?(\w+)\s*;", re.MULTILINE)
#: Clocks and resets; suffixes of the names of a domain's pins and registers.
_TREES = frozenset(name for names in CLOCK_PORTS.values() for name in names)
_ENDINGS = {ENGINE_DOMAIN: "", MEMORY_DOMAIN: "_mem"}


@dataclass(frozen=True)
class ShellPort:
    """A port of a module: its name, its width in bits, and whether it is an input."""

    name: str
    width: int
    is_input: bool


def ports_of(name: str, text: str) -> tuple[ShellPort, ...]:
    """Ports of module ``name`` in the emitted Verilog ``text``, in its order.

    Raises:
        SynthesisError: there is no such module.
    """
    start = re.search(rf"^module {re.escape(name)}\b", text, re.MULTILINE)
    if start is None:
        raise SynthesisError(f"the Verilog has no module {name!r}")
    body = text[start.start() :]
    return tuple(
        ShellPort(port, int(high or 0) + 1, direction == "input")
        for direction, high, port in _PORT.findall(body[: body.index("endmodule")])
    )


def _sides(ports: Sequence[ShellPort]) -> tuple[list[ShellPort], list[ShellPort]]:
    inputs = [port for port in ports if port.is_input and port.name not in _TREES]
    return inputs, [port for port in ports if not port.is_input]


def shell_ffs(ports: Sequence[ShellPort]) -> int:
    """Number of flip-flops that the shell adds to a module with ``ports``."""
    inputs, outputs = _sides(ports)
    resets = {reset for _, reset in CLOCK_PORTS.values()}
    registered = sum(port.name in resets for port in ports)
    return sum(p.width for p in inputs) + 2 * sum(p.width for p in outputs) + registered


def shell_verilog(name: str, ports: Sequence[ShellPort], memory: Collection[str] = ()) -> str:
    """Verilog of module :data:`SHELL` around module ``name``, which it instantiates as
    :data:`UNIT`.

    Parameters:
        name: of the module. ports: its ports; ``clk`` and ``rst``, if present, are clock and reset,
            ``clk_mem`` and ``rst_mem`` those of the memory.
        memory: names of the ports that belong to the memory's clock.

    Raises:
        SynthesisError: the module has no input or no output to time.
    """
    inputs, outputs = _sides(ports)
    if not inputs or not outputs:
        raise SynthesisError(f"module {name!r} needs an input and an output to be timed")
    names = {port.name for port in ports}
    pins: list[str] = []
    body: list[str] = []
    connections: list[str] = []
    for domain, (clock, reset) in CLOCK_PORTS.items():
        ending = _ENDINGS[domain]
        sides = [
            [port for port in side if (port.name in memory) == (domain == MEMORY_DOMAIN)]
            for side in (inputs, outputs)
        ]
        if domain != ENGINE_DOMAIN and clock not in names:
            continue
        if not all(sides):
            raise SynthesisError(f"module {name!r} needs an input and an output of {clock}")
        for wire, side in zip(("given", "result"), sides, strict=True):
            low = 0
            for port in side:
                high = low + port.width
                connections.append(f".{port.name}({wire}{ending}[{high - 1}:{low}])")
                low = high
        if clock in names:
            connections.append(f".{clock}({clock})")
        if reset in names:
            connections.append(f".{reset}(reset{ending})")
        pins += [f"input {clock}", f"input {reset}", f"input shift_in{ending}"]
        pins += [f"input capture{ending}", f"output shift_out{ending}"]
        wide, out = (sum(port.width for port in side) for side in sides)
        body.append(_registers(clock, reset if reset in names else "", ending, wide, out))
    return (
        f"module {SHELL}({', '.join(pins)});\n"
        f"{''.join(body)}"
        f"  {name} {UNIT} (\n    " + ",\n    ".join(connections) + "\n  );\nendmodule\n"
    )


def _registers(clock: str, reset: str, ending: str, wide: int, out: int) -> str:
    """The registers of one clock, for ``wide`` inputs and ``out`` outputs."""
    driven = (
        f"{{given{ending}[{wide - 2}:0], shift_in{ending}}}" if wide > 1 else f"shift_in{ending}"
    )
    chain = f"{{chain{ending}[{out - 2}:0], 1'b0}}" if out > 1 else "1'b0"
    assigned = ""
    if reset:
        assigned = f"  reg reset{ending};\n  always @(posedge {clock}) reset{ending} <= {reset};\n"
    return (
        f"  reg [{wide - 1}:0] given{ending};\n"
        f"  wire [{out - 1}:0] result{ending};\n"
        f"  reg [{out - 1}:0] taken{ending};\n"
        f"  reg [{out - 1}:0] chain{ending};\n"
        f"{assigned}"
        f"  assign shift_out{ending} = chain{ending}[{out - 1}];\n"
        f"  always @(posedge {clock}) begin\n"
        f"    given{ending} <= {driven};\n"
        f"    taken{ending} <= result{ending};\n"
        f"    chain{ending} <= capture{ending} ? taken{ending} : {chain};\n"
        f"  end\n"
    )
