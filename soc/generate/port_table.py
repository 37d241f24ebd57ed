"""Port tables of a component, for its documentation.

What ports and fields mean is read from the docstrings of component, signatures and layouts: from
their ``Members``, each ``name (direction or width, type): meaning``, where the type of a layout is
the function that returns it.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, IntEnum
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from amaranth.hdl import Shape, Value
from amaranth.lib import data, stream, wiring

from hdl.clocks import CLOCK_PORTS, ENGINE_DOMAIN
from hdl.emission import interface_only
from pe.config import PeConfig
from pe.core import Pe

__all__ = [
    "PortField",
    "PortRow",
    "engine_example",
    "port_constants",
    "port_table",
    "ports_of",
    "verilog_names",
]

#: Letters for the numbers in names of ports of arrays.
_LETTERS = "nmk"
#: What the handshake of a stream means.
_HANDSHAKE = {"valid": "a payload is offered", "ready": "a payload is taken"}
#: The side of a port whose directions a docstring gives; the table gives those of the module.
_SEEN_FROM = re.compile(r",\s+seen\s+from\s+the\s+(\w+)(?:\s+\([^)]*\))?")
_REFERENCE = re.compile(r":\w+:`(?:([\w.]+)\.)?(\w+)`")
#: A field of a port, or its lowest bit, in :data:`_ENGINE_EXAMPLE`.
_PLACE = re.compile(r"<(low )?(\w+)\.(\w+)>")
#: Numbers of elements of an array, and what each stream has, which names of constants leave out.
_UNNAMED = {*_LETTERS, "payload"}
_ENGINE_EXAMPLE = """`timescale 1ns/1ps
module example;
  parameter PARAMETERS = 0;  // of the launch
`include "TOP_ports.vh"
  reg clk = 0, rst = 1;
  always #5 clk = !clk;
DECLARATIONS
  TOP engine (.clk(clk), .rst(rst), CONNECTIONS);

  // A memory of 32 KiB that serves one request at a time.
  reg [63:0] memory [0:4095];
  reg [11:0] place;
  integer left, lane;
  always begin
    memory__request__ready <= 1;
    @(posedge clk);
    if (memory__request__valid && memory__request__ready) begin
      place = <memory__request__payload.address> >> 3;
      left = <memory__request__payload.words> + 1;
      if (<memory__request__payload.write>) begin
        for (lane = 0; lane < 8; lane = lane + 1)
          if (memory__request__payload[<low memory__request__payload.strobe> + lane])
            memory[place][8 * lane +: 8] =
              memory__request__payload[<low memory__request__payload.data> + 8 * lane +: 8];
        left = <memory__request__payload.last>;
      end
      memory__request__ready <= left == 0;
      <memory__response__payload.tag> <=
        <memory__request__payload.tag>;
      for (left = left; left > 0; left = left - 1) begin
        memory__response__valid <= 1;
        <memory__response__payload.data> <=
          memory[place];
        <memory__response__payload.last> <= left == 1;
        @(posedge clk);
        while (!memory__response__ready) @(posedge clk);
        place = place + 1;
      end
      memory__response__valid <= 0;
    end
  end

@CODE@  integer n;
  initial begin
    for (n = 0; n < 4096; n = n + 1) memory[n] = 0;
    $readmemh("memory.mem", memory);
    identity__pe_count <= 1;
    repeat (2) @(posedge clk);
    rst <= 0;
@LOAD@    control__launch__valid <= 1;
    <control__launch__payload.parameters> <=
      PARAMETERS;
    @(posedge clk);
    while (!control__launch__ready) @(posedge clk);
    control__launch__valid <= 0;
    @(posedge clk);
    while (<control__status.state> < 2) @(posedge clk);
    $display("state %0d, cause %0d, pc %0d",
      <control__status.state>,
      <control__status.cause>,
      $signed(<control__status.pc>));
@CYCLES@    $writememh("memory.out", memory);
    $finish;
  end
endmodule
"""
_CODE = "  reg [31:0] code [0:(1 << CONTROL_LOAD_ADDRESS_BITS) - 1];\n"
_LOAD = """    $readmemh("program.mem", code);
    for (n = 0; n < 1 << CONTROL_LOAD_ADDRESS_BITS && code[n] !== 32'bx; n = n + 1) begin
      control__load__valid <= 1;
      <control__load__payload.address> <= n;
      <control__load__payload.word> <= code[n];
      @(posedge clk);
      while (!control__load__ready) @(posedge clk);
    end
    control__load__valid <= 0;
    <control__launch__payload.words> <= n;
"""
_CYCLES = '    $display("%0d cycles", control__counter_value);\n'
_SECTION = re.compile(r"^(?:Parameters|Members|Raises):$", re.MULTILINE)


class PortField(NamedTuple):
    """Bits of a port.

    Attributes:
        name: fields within fields are joined by a dot.
        low: lowest bit.
        bits: number of bits.
        meaning: with the names of its values.
    """

    name: str
    low: int
    bits: int
    meaning: str


class PortRow(NamedTuple):
    """A Verilog port, or all ports of an array that differ only in their numbers.

    Attributes:
        name: with a letter for each number of an array.
        counts: number of elements for each letter, from 0 on.
        is_input: seen from the component.
        bits: of one port.
        meaning: with the names of its values.
        fields: lowest first; empty if it is one value.
    """

    name: str
    counts: tuple[int, ...]
    is_input: bool
    bits: int
    meaning: str
    fields: tuple[PortField, ...]


def ports_of(component: "wiring.Component[Any]") -> tuple[PortRow, ...]:
    """The ports of ``component`` as emission names them, without clock and reset."""
    ports: dict[str, PortRow] = {}
    for path, member, signal in component.signature.flatten(component):
        indices = [step for step in path if isinstance(step, int)]
        letters = iter(_LETTERS)
        name = "__".join(next(letters) if isinstance(step, int) else str(step) for step in path)
        counts = tuple(index + 1 for index in indices)
        listed = ports.get(name)
        if listed is not None:
            counts = tuple(map(max, counts, listed.counts))
        described = _described(component, path)
        ports[name] = PortRow(
            name=name,
            counts=counts,
            is_input=member.flow == wiring.In,
            bits=len(Value.cast(signal)),
            meaning=_meaning(described, member.shape),
            fields=tuple(_fields(member.shape, "", 0, described.type)),
        )
    return tuple(ports.values())


def _fields(shape: Any, prefix: str, low: int, layout: object) -> Iterator[PortField]:
    """Fields of a port; ``layout``: the function that returned ``shape``."""
    if not isinstance(shape, data.Layout):
        return
    for name, field in shape:
        described = _members(layout).get(str(name), _Described("", None))
        inner = list(_fields(field.shape, f"{prefix}{name}.", low + field.offset, described.type))
        if inner:
            yield from inner
        else:
            width = Shape.cast(field.shape).width
            meaning = _meaning(described, field.shape)
            yield PortField(f"{prefix}{name}", low + field.offset, width, meaning)


class _Described(NamedTuple):
    """What a docstring says of a member: ``text``, and the ``type`` that it names, or None. If that
    type is of counters, ``counted`` are those that exist."""

    text: str
    type: object
    counted: Sequence[IntEnum] | None = None


def _described(component: "wiring.Component[Any]", path: Sequence[str | int]) -> _Described:
    """What docstrings say of the port at ``path``; of a payload, what they say of its stream."""
    owner: object = type(component)
    signature: Any = component.signature
    described = _Described("", None)
    counted = getattr(component, "counted", None)
    for step in path:
        if isinstance(step, int):
            continue
        if not isinstance(signature, stream.Signature):
            described = _members(owner).get(step, _Described("", None))
        elif step in _HANDSHAKE:
            described = _Described(_HANDSHAKE[step], None)
        member = signature.members[step]
        if member.is_signature:
            signature = _signature(member)
            owner = type(signature)
            counted = getattr(signature, "counted", None)
    return described._replace(counted=counted)


@lru_cache(maxsize=64)
def _members(owner: Any) -> dict[str, _Described]:
    """What the docstring of ``owner`` says of its members."""
    section = (inspect.getdoc(owner) or "").partition("Members:\n")[2].partition("\n\n")[0]
    members: dict[str, _Described] = {}
    for entry in re.split(r"^    (?=\S)", section, flags=re.MULTILINE)[1:]:
        head, _, text = " ".join(entry.split()).partition(": ")
        names, _, kind = head.partition(" (")
        reference = _REFERENCE.search(kind)
        kind_type = None
        if reference is not None:
            kind_type = getattr(import_module(reference[1] or owner.__module__), reference[2])
        for name in re.split(", | or ", names):
            members[name] = _Described(_markdown(text).rstrip("."), kind_type)
    return members


def _signature(member: wiring.Member) -> Any:
    """The signature of a member of several ports, as its class defines it."""
    signature = member.signature
    return signature.flip() if isinstance(signature, wiring.FlippedSignature) else signature


def _markdown(text: str) -> str:
    """Text of a docstring, with names as in the Verilog."""
    return _REFERENCE.sub(r"`\2`", text).replace("``", "`")


def _meaning(described: _Described, shape: Any) -> str:
    kind = shape if isinstance(shape, type) else described.type
    values = ""
    if isinstance(kind, type) and issubclass(kind, Enum):
        items: Iterable[Enum] = kind
        if described.counted is not None and issubclass(kind, IntEnum):
            items = described.counted
        values = ", ".join(f"{item.value} {item.name}" for item in items)
        values = values or "there are none, and all values are 0"
    is_signed = not isinstance(shape, data.Layout) and Shape.cast(shape).signed
    return "; ".join(filter(None, (described.text, values, "signed" if is_signed else "")))


def port_table(
    component: "wiring.Component[Any]", clocks: Sequence[str] = CLOCK_PORTS[ENGINE_DOMAIN]
) -> str:
    """Markdown with a table of the ports, ``clocks`` first, and one for each member of several
    ports, below how it works. Each port is followed by one row per field."""
    head = "| port | direction | bits | meaning |\n|---|---|---|---|\n"
    meanings = ("clock", "reset")
    text = head + "".join(
        f"| `{name}` | in | 1 | {meanings[number % 2]} |\n" for number, name in enumerate(clocks)
    )
    groups: dict[str, str] = {}
    for port in ports_of(component):
        group = port.name.partition("__")[0]
        groups[group] = groups.get(group, "") + _rows(port)
    members = component.signature.members
    text += "".join(rows for name, rows in groups.items() if not members[name].is_signature)
    for name, rows in groups.items():
        if members[name].is_signature:
            described = _described(component, (name,))
            signature = _signature(members[name])
            manual = _SECTION.split(inspect.getdoc(type(signature)) or "")[0]
            role = r" (the module is the \1)" if members[name].flow == wiring.Out else r""
            prose = _markdown(_SEEN_FROM.sub(role, manual)).strip()
            note = getattr(signature, "note", "")
            prose = "\n\n".join(filter(None, (prose, note)))
            text += f"\n### `{name}`: {described.text}\n\n{prose}\n\n{head}{rows}"
    return text


def _rows(port: PortRow) -> str:
    """The rows of a port and its fields."""
    direction = "in" if port.is_input else "out"
    numbers = ", ".join(
        f"{letter} = 0..{count - 1}" for letter, count in zip(_LETTERS, port.counts, strict=False)
    )
    label = f"`{port.name}`" + (f", {numbers}" if numbers else "")
    rows = f"| {label} | {direction} | {port.bits} | {port.meaning} |\n"
    for field in port.fields:
        high = field.low + field.bits - 1
        bits = f"{high}:{field.low}" if field.bits > 1 else str(field.low)
        rows += f"| &nbsp;&nbsp;.{field.name} | | `[{bits}]` | {field.meaning} |\n"
    return rows


def port_constants(component: "wiring.Component[Any]", top: str) -> str:
    """Verilog to include in a module around the module ``top``: the widths of its ports and of
    their fields, and the fields' lowest bits."""
    lines = [
        f"// Constants for the ports of {top}, to be included in a module, such as of a field in",
        "// x__y__payload: its lowest bit X_Y_FIELD, X_Y_FIELD_BITS, and X_Y_BITS of the port.",
        "// verilator lint_off UNUSEDPARAM",
    ]
    for port in ports_of(component):
        if port.bits > 1:
            lines.append(f"localparam {_constant(port.name)}_BITS = {port.bits};")
        for field in port.fields:
            name = _constant(port.name, field.name)
            lines.append(f"localparam {name} = {field.low}, {name}_BITS = {field.bits};")
    return "\n".join([*lines, "// verilator lint_on UNUSEDPARAM", ""])


def _constant(port: str, field: str = "") -> str:
    """The name of a port's, or of a field's, lowest bit in :func:`port_constants`."""
    steps = [step for step in port.split("__") if step not in _UNNAMED]
    return "_".join([*steps, *field.split(".")]).upper().rstrip("_")


def engine_example(config: PeConfig, top: str) -> str:
    """A module in Verilog that runs a program on an engine, the module ``top``."""

    def place(match: re.Match[str]) -> str:
        name = _constant(match[2], match[3])
        if match[1]:
            return name
        return f"{match[2]}[{name}{'' if (match[2], match[3]) in bits else f' +: {name}_BITS'}]"

    ports = ports_of(interface_only(Pe(config)))
    bits = {(port.name, field.name) for port in ports for field in port.fields if field.bits == 1}
    declarations = (
        f"  {'reg' if port.is_input else 'wire'} "
        f"{f'[{_constant(port.name)}_BITS - 1:0] ' if port.bits > 1 else ''}{port.name}"
        f"{' = 0' if port.is_input else ''};"
        for port in ports
    )
    connections = ",\n    ".join(f".{port.name}({port.name})" for port in ports)
    text = _ENGINE_EXAMPLE.replace("@CODE@", "" if config.program else _CODE)
    text = text.replace("@LOAD@", "" if config.program else _LOAD)
    text = text.replace("@CYCLES@", _CYCLES if config.counters else "")
    return (
        _PLACE.sub(place, text)
        .replace("DECLARATIONS", "\n".join(declarations))
        .replace("CONNECTIONS", connections)
        .replace("TOP", top)
    )


def verilog_names(port: PortRow) -> list[str]:
    """The names that ``port`` stands for."""
    names = [port.name]
    for letter, count in zip(_LETTERS, port.counts, strict=False):
        place = re.compile(rf"(?<=__){letter}(?=__|$)")
        names = [place.sub(str(index), name, count=1) for name in names for index in range(count)]
    return names
