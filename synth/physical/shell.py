"""A shell for placing and routing a module by itself, with registers at its ports and five pins.

A processing engine has about 600 port bits, more than a package has pins, and a path from a pin
says nothing about the module. In the shell a register drives every input and another stores every
output, so each path of the module counts, even from port to port, and none of its logic can be
optimised away. The input registers form a long shift register from a pin; ``capture`` copies the
output registers into another one that leads to a pin. With two clocks, the ports of each clock
domain have such registers with their own pins.
"""

import re
from collections.abc import Collection, Mapping

from hdl.clocks import CLOCK_PORTS, ENGINE_DOMAIN, MEMORY_DOMAIN
from synth.errors import SynthesisError

#: Names of the shell's module and of the module's instance in it.
SHELL = "vip_shell"
UNIT = "unit"

_PORT = re.compile(r"^\s*(input|output)\s+(?:signed\s+)?(?:\[(\d+):0\]\s+)?(\w+)\s*;", re.MULTILINE)
#: Clocks and resets; suffixes of the names of a domain's pins and registers.
_TREES = frozenset(name for names in CLOCK_PORTS.values() for name in names)
_ENDINGS = {ENGINE_DOMAIN: "", MEMORY_DOMAIN: "_mem"}


#: Inputs and outputs of a module: name -> width in bits, in the module's order.
Ports = tuple[Mapping[str, int], Mapping[str, int]]


def ports_of(name: str, text: str) -> Ports:
    """Ports of module ``name`` in the emitted Verilog ``text``.

    Raises:
        SynthesisError: there is no such module.
    """
    start = re.search(rf"^module {re.escape(name)}\b", text, re.MULTILINE)
    if start is None:
        raise SynthesisError(f"the Verilog has no module {name!r}")
    body = text[start.start() :]
    sides: dict[str, dict[str, int]] = {"input": {}, "output": {}}
    for direction, high, port in _PORT.findall(body[: body.index("endmodule")]):
        sides[direction][port] = int(high or 0) + 1
    return sides["input"], sides["output"]


def shell_ffs(ports: Ports) -> int:
    """Number of flip-flops that the shell adds to a module with ``ports``."""
    inputs, outputs = ports
    timed = sum(width for port, width in inputs.items() if port not in _TREES)
    resets = {reset for _, reset in CLOCK_PORTS.values()}
    return timed + 2 * sum(outputs.values()) + sum(port in resets for port in inputs)


def shell_verilog(name: str, ports: Ports, memory: Collection[str] = ()) -> str:
    """Verilog of module :data:`SHELL` around module ``name``, which it instantiates as
    :data:`UNIT`.

    Parameters:
        name: of the module. ports: its ports; ``clk`` and ``rst``, if present, are clock and reset,
            ``clk_mem`` and ``rst_mem`` those of the memory.
        memory: names of the ports that belong to the memory's clock.

    Raises:
        SynthesisError: the module has no input or no output to time.
    """
    inputs, outputs = ports
    timed = {port: width for port, width in inputs.items() if port not in _TREES}
    if not timed or not outputs:
        raise SynthesisError(f"module {name!r} needs an input and an output to be timed")
    pins: list[str] = []
    body: list[str] = []
    connections: list[str] = []
    for domain, (clock, reset) in CLOCK_PORTS.items():
        ending = _ENDINGS[domain]
        sides = [
            {port: side[port] for port in side if (port in memory) == (domain == MEMORY_DOMAIN)}
            for side in (timed, outputs)
        ]
        if domain != ENGINE_DOMAIN and clock not in inputs:
            continue
        if not all(sides):
            raise SynthesisError(f"module {name!r} needs an input and an output of {clock}")
        for wire, side in zip(("given", "result"), sides, strict=True):
            low = 0
            for port, width in side.items():
                high = low + width
                connections.append(f".{port}({wire}{ending}[{high - 1}:{low}])")
                low = high
        if clock in inputs:
            connections.append(f".{clock}({clock})")
        if reset in inputs:
            connections.append(f".{reset}(reset{ending})")
        pins += [f"input {clock}", f"input {reset}", f"input shift_in{ending}"]
        pins += [f"input capture{ending}", f"output shift_out{ending}"]
        wide, out = (sum(side.values()) for side in sides)
        body.append(_registers(clock, reset if reset in inputs else "", ending, wide, out))
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
