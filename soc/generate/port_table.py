"""Port tables of a component, and a module that runs a program on it, for its documentation.

What ports and fields mean is read from the docstrings of component, signatures and layouts: from
their ``Members``, each ``name (direction or width, type): meaning``, where the type of a layout is
the function that returns it.
"""

import inspect
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum, IntEnum
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, NamedTuple

from amaranth.hdl import Shape, Value
from amaranth.lib import data, stream, wiring

from hdl.clocks import CLOCK_PORTS, ENGINE_DOMAIN
from hdl.crossing import RESET_CYCLES
from memory.config import VaultConfig
from memory.controller.dram_port import DramCommand, DramPort
from pe.config import PeConfig
from soc.host.register_map import BLOCKS

#: Letters for the numbers in names of ports of arrays.
_LETTERS = "nmk"
#: What the handshake of a stream means.
_HANDSHAKE = {"valid": "a payload is offered", "ready": "a payload is taken"}
#: The side of a port whose directions a docstring gives; the table gives those of the module.
_SEEN_FROM = re.compile(r",\s+seen\s+from\s+the\s+(\w+)(?:\s+\([^)]*\))?")
_REFERENCE = re.compile(r":\w+:`(?:([\w.]+)\.)?(\w+)`")
#: A field of a port, or its lowest bit, in an example.
_PLACE = re.compile(r"<(low )?(\w+)\.(\w+)>")
#: Numbers of elements of an array, and what each stream has, which names of constants leave out.
_UNNAMED = {*_LETTERS, "payload"}
#: The beginning of an example: clock, declarations and the design.
_DESIGN = """`timescale 1ns/1ps
module example;
  parameter PARAMETERS = 0;  // of the launch
  parameter WORDS = 4096;  // of 64 bits, in the memory
`include "TOP_ports.vh"
  reg clk = 0, rst = 1;
  always #5 clk = !clk;
DECLARATIONS
  TOP machine (CONNECTIONS);

"""
_ENGINE_MEMORY = """  // A memory that serves one request at a time.
  reg [63:0] memory [0:WORDS - 1], place;
  integer left, lane;
  always begin
    memory__request__ready <= 1;
    @(posedge clk);
    if (memory__request__valid && memory__request__ready) begin
      place = <memory__request__payload.address> >> 3;
      left = <memory__request__payload.words> + 1;
      if (place + (<memory__request__payload.write> ? 1 : left) > WORDS) BEYOND
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

"""
#: Launches a program on the engine with the ports ``CONTROL``.
_CONTROL_HOST = """@CODE@  integer n;
  initial begin
    for (n = 0; n < WORDS; n = n + 1) MEMORY[n] = 0;
    $readmemh("memory.mem", MEMORY);
    COUNT <= ENGINES;
    repeat (RESET) @(posedge clk);
    rst <= 0;
@LOAD@    CONTROL__launch__valid <= 1;
    <CONTROL__launch__payload.parameters> <=
      PARAMETERS;
    @(posedge clk);
    while (!CONTROL__launch__ready) @(posedge clk);
    CONTROL__launch__valid <= 0;
    @(posedge clk);
    while (<CONTROL__status.state> < 2) @(posedge clk);
    $display("state %0d, cause %0d, pc %0d",
      <CONTROL__status.state>,
      <CONTROL__status.cause>,
      $signed(<CONTROL__status.pc>));
@CYCLES@    $writememh("memory.out", MEMORY);
    $finish;
  end
endmodule
"""
_CODE = "  reg [31:0] code [0:(1 << CONTROL_LOAD_ADDRESS_BITS) - 1];\n"
_LOAD = """    $readmemh("program.mem", code);
    for (n = 0; n < 1 << CONTROL_LOAD_ADDRESS_BITS && code[n] !== 32'bx; n = n + 1) begin
      CONTROL__load__valid <= 1;
      <CONTROL__load__payload.address> <= n;
      <CONTROL__load__payload.word> <= code[n];
      @(posedge clk);
      while (!CONTROL__load__ready) @(posedge clk);
    end
    CONTROL__load__valid <= 0;
    <CONTROL__launch__payload.words> <= n;
"""
_CYCLES = '    $display("%0d cycles", CONTROL__counter_value);\n'
#: Writes or reads a word at a port with the channels of AXI.
_AXI_TASKS = """
  always @(posedge clk) begin
    if (PORT__awready) PORT__awvalid <= 0;
    if (PORT__wready) PORT__wvalid <= 0;
    if (PORT__arready) PORT__arvalid <= 0;
  end
  task PORT_write(input [47:0] address, input [63:0] word); begin
    @(negedge clk);
    PORT__awaddr = address; PORT__awvalid = 1; PORT__wdata = word; PORT__wvalid = 1;
    @(posedge clk);
    while (!PORT__bvalid) @(posedge clk);
  end endtask
  task PORT_read(input [47:0] address, output [63:0] word); begin
    @(negedge clk);
    PORT__araddr = address; PORT__arvalid = 1;
    @(posedge clk);
    while (!PORT__rvalid) @(posedge clk);
    word = PORT__rdata;
  end endtask
"""
#: Launches a program on the first engine of a chip, by its registers.
_CHIP_HOST = """
  reg [63:0] memory [0:WORDS - 1], value;
  reg [31:0] code [0:8191];
  integer n;
  initial begin
    $readmemh("program.mem", code);
    $readmemh("memory.mem", memory);
    {control__bready, control__rready, data__bready, data__rready} = -1;
    control__wstrb = -1; data__wstrb = -1; data__wlast = 1;
    data__awsize = 3; data__arsize = 3; data__awburst = 1; data__arburst = 1;
    repeat (RESET) @(posedge clk);
    rst <= 0;
    // As many words as memory.mem has, here and at the end.
    for (n = 0; n < WORDS && memory[n] !== 64'bx; n = n + 1) data_write(8 * n, memory[n]);
    control_write(<CHIP.SELECT>, 1);
    for (n = 0; n < 8192 && code[n] !== 32'bx; n = n + 1)
      control_write(<CHIP.PROGRAM> + 4 * n, code[n]);
    control_write(<CHIP.PARAMETERS_LOW>, PARAMETERS);
    control_write(<CHIP.START>, n);
    value = 1;
    while (value[0]) control_read(<CHIP.RUNNING>, value);
    control_read(<PE.STATUS>, value);
    $display("state %0d, cause %0d", value[1:0], value[15:8]);
    for (n = 0; n < WORDS && memory[n] !== 64'bx; n = n + 1) data_read(8 * n, memory[n]);
    $writememh("memory.out", memory);
    $finish;
  end
endmodule
"""
#: The memory of a vault, with words of a column in the order of their addresses.
_DRAM = """
// A DRAM of which WORDS exist: of 64 bits, by their byte address in the vault.
module dram #(parameter WORDS = 4096) (
  input clk, input valid, input [2:0] kind, input [BANK:0] bank, input [ROW:0] row,
  input [COLUMN:0] column, input [63:0] write_data, input [7:0] write_strobe,
  output reg [63:0] read_data);
  reg [63:0] words [0:WORDS - 1];
  reg [ROW:0] open [0:(2 << BANK) - 1];
  // Of the bus, by the cycle modulo 128: whether a word is written, and its place.
  reg [127:0] writes = 0;
  reg [63:0] place [0:127];
  reg [6:0] now = 0, at;
  integer n;
  always @(posedge clk) begin
    for (n = 0; n < 8; n = n + 1)
      if (writes[now] && write_strobe[n]) words[place[now]][8 * n +: 8] = write_data[8 * n +: 8];
    writes[now] = 0;
    if (valid && kind == ACT) open[bank] = row;
    if (valid && (kind == READ || kind == WRITE))
      for (n = 0; n < 4; n = n + 1) begin
        at = now + n + (kind == READ ? TCL : TCWL);
        writes[at] = kind == WRITE;
        place[at] = {PLACE, n[1:0]};
        if (place[at] >= WORDS) BEYOND
      end
    now = now + 1;
    read_data <= words[place[now]];
  end
endmodule
"""
#: Ends a run that accesses what is not there.
_BEYOND = """begin
          $display("error: an access is beyond the WORDS = %0d words of the memory", WORDS);
          $finish;
        end"""
#: Until the DRAM has what stores of a halted engine wrote.
_SETTLE = "    repeat (1000) @(posedge clk);  // The controller may still hold writes.\n"
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


def example(
    config: PeConfig, component: "wiring.Component[Any]", top: str, clocks: Sequence[str]
) -> str:
    """A module in Verilog that runs a program on the first engine of a design; "" if the design's
    memory is on a bus or on the chip, or if it is a chip with a serial host port or with a program
    of its own.

    Parameters:
        config: of the engine. component: the design. top: its module.
        clocks: its clock ports, each with its reset.
    """
    ports, members = ports_of(component), component.signature.members
    values = {"TOP": top, "MEMORY": "memory", "ENGINES": "1", "COUNT": "identity__pe_count"}
    # A clock and its reset, or two of each.
    values |= {"BEYOND": _BEYOND, "RESET": str(RESET_CYCLES if clocks[2:] else 2)}
    host = _CONTROL_HOST.replace("@CODE@", "" if config.program else _CODE)
    host = host.replace("@LOAD@", "" if config.program else _LOAD)
    host = host.replace("@CYCLES@", _CYCLES if config.counters else "")
    if "memory" in members:
        text = _DESIGN + _ENGINE_MEMORY + host.replace("CONTROL__", "control__")
    elif "dram" not in members or "received" in members or ("data" in members and config.program):
        return ""
    elif "data" in members:
        tasks = "".join(_AXI_TASKS.replace("PORT", port) for port in ("control", "data"))
        text = _DESIGN + tasks + _CHIP_HOST + _DRAM
    else:
        host = host.replace("    $writememh", f"{_SETTLE}    $writememh")
        text = _DESIGN + host.replace("CONTROL__", "control__n__") + _DRAM
        values |= {"MEMORY": "memory.words", "COUNT": "pe_count"}
    joined = [f".{name}({('clk', 'rst')[at % 2]})" for at, name in enumerate(clocks)]
    declared, drams = [], []
    for port in ports:
        of_dram = port.name.startswith("dram__")
        width = f"[{_constant(port.name)}_BITS - 1:0] " if port.bits > 1 else ""
        kind, start = ("reg", " = 0") if port.is_input and not of_dram else ("wire", "")
        for name in verilog_names(port):
            declared.append(f"  {kind} {width}{name}{start};")
            joined.append(f".{name}({name})")
            if of_dram and port.is_input:
                drams.append(name.removesuffix("__read_data"))
        if port.name == "control__n__stop":
            values["ENGINES"] = str(port.counts[0])
    if drams:
        values |= _dram_values(_signature(members["dram"]).config)
    declared += map(_dram_instance, drams)
    values |= {"DECLARATIONS": "\n".join(declared), "CONNECTIONS": ",\n    ".join(joined)}
    bits = {(port.name, field.name) for port in ports for field in port.fields if field.bits == 1}
    text = _PLACE.sub(partial(_place, bits), text)
    text = re.sub(r"\b[A-Z]+\b", lambda word: values.get(word[0], word[0]), text)
    return text.replace("TOP_ports", f"{top}_ports").replace("control__n__", "control__0__")


def _place(one_bit: Collection[tuple[str, str]], match: re.Match[str]) -> str:
    """The bits of a field, its lowest, or the address of a register."""
    blocks = {block.name: block for block in BLOCKS}
    if match[2] in blocks:
        return str(blocks[match[2]].address(match[3]))
    name = _constant(match[2], match[3])
    if match[1]:
        return name
    return f"{match[2]}[{name}{'' if (match[2], match[3]) in one_bit else f' +: {name}_BITS'}]"


def _dram_values(config: VaultConfig) -> dict[str, str]:
    """Sizes and times of :data:`_DRAM`."""
    fields = {"row": "open[bank]", "bank": "bank", "column": "column"}
    return {
        "BANK": str(config.bank_bits - 1),
        "ROW": str(config.row_bits - 1),
        "COLUMN": str(config.column_bits - 1),
        "TCL": str(config.timing.tcl),
        "TCWL": str(config.timing.tcwl),
        "PLACE": ", ".join(fields[name] for name in config.address_map.split("-")),
        **{command.name: str(command.value) for command in DramCommand},
    }


def _dram_instance(port: str) -> str:
    """An instance of :data:`_DRAM` at a port: ``memory``, or with its number."""
    joined = (f".{name}({port}__{name})" for name in DramPort(VaultConfig()).members)
    name = port.replace("dram", "memory").replace("__", "_")
    return f"  dram #(WORDS) {name} (.clk(clk),\n    {f',{chr(10)}    '.join(joined)});"


def verilog_names(port: PortRow) -> list[str]:
    """The names that ``port`` stands for."""
    names = [port.name]
    for letter, count in zip(_LETTERS, port.counts, strict=False):
        place = re.compile(rf"(?<=__){letter}(?=__|$)")
        names = [place.sub(str(index), name, count=1) for name in names for index in range(count)]
    return names
