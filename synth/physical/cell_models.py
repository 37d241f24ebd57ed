"""Verilog models of mapped cells, for simulation: of a library by their Liberty functions, of
FPGAs by Yosys's models, and here where those have no behaviour."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from synth.errors import SynthesisError
from synth.timing.cell_library import Cell, CellLibrary
from synth.timing.gate_function import verilog_expression

__all__ = ["fpga_models", "library_models"]

#: Target -> files of Yosys with its cells; a cell is in the first that has it.
_SHARED: Mapping[str, tuple[str, ...]] = {
    "xc7": ("xilinx/cells_sim.v",),
    "ecp5": ("lattice/common_sim.vh", "lattice/ccu2c_sim.vh"),
}
_MODULE = re.compile(r"^module (\w+)\b.*?^endmodule\n", re.MULTILINE | re.DOTALL)
_INSTANCE = re.compile(r"^\s+(\w+)\s+(?:#\(|\w+\s*\()", re.MULTILINE)


def library_models(library: CellLibrary, names: Iterable[str]) -> str:
    """Models of the cells ``names``.

    Raises:
        SynthesisError: a cell is not a gate or a flip-flop with a clock alone.
    """
    return "".join(_library_model(library.cells[name]) for name in sorted(names))


def _library_model(cell: Cell) -> str:
    state = cell.state
    if cell.sequential and (state is None or {state.clear, state.preset} != {"0"}):
        raise SynthesisError(
            f"a cell {cell.name} can't be simulated: it is not a gate, or a"
            " flip-flop with a clock alone"
        )
    ports = [f"input {pin}" for pin in cell.inputs] + [f"output {pin}" for pin in cell.outputs]
    lines = [f"module {cell.name} ({', '.join(ports)});"]
    if state is not None:
        clock, following = map(verilog_expression, (state.clock, state.next_state))
        lines += [
            f"  reg {state.name};",
            f"  always @(posedge {clock}) {state.name} <= {following};",
        ]
        if state.inverse:
            lines.append(f"  wire {state.inverse} = ~{state.name};")
    lines += [
        f"  assign {pin} = {verilog_expression(cell.pins[pin].function)};" for pin in cell.outputs
    ]
    return "\n".join([*lines, "endmodule\n"])


def fpga_models(target: str, names: Iterable[str]) -> str:
    """Models of the cells ``names`` of the FPGAs of ``target``.

    Raises:
        SynthesisError: a cell has no model.
    """
    shared = _shared(target)
    models: dict[str, str] = {}
    wanted = sorted(names)
    while wanted:
        name = wanted.pop()
        if name in models:
            continue
        text = _OWN.get(name) or shared.get(name)
        if text is None:
            raise SynthesisError(f"cells {name} of {target} have no model")
        models[name] = text
        wanted += [part for part in _INSTANCE.findall(text) if part in shared]
    return "".join(models[name] for name in sorted(models))


@cache
def _shared(target: str) -> Mapping[str, str]:
    """Yosys's models of cells, without their times."""
    share = files("pyosys").joinpath("share")
    text = "".join(share.joinpath(file).read_text(encoding="utf-8") for file in _SHARED[target])
    text = re.sub(r"\bspecify\b.*?\bendspecify\b", "", text, flags=re.DOTALL)
    return {match[1]: match[0] for match in _MODULE.finditer(text)}


def _bits(prefix: str, count: int) -> str:
    """The ports of a bus that has one for each bit, as a concatenation."""
    return ", ".join(f"{prefix}{bit}" for bit in reversed(range(count)))


def _block_ram(name: str, half: int) -> str:
    """A block RAM of Xilinx with one port that reads (A) and one that writes (B).

    Parameters:
        half: data bits of a port; both are the two halves of the widest word.
    """
    address = {16: 14, 32: 16}[half]
    rows = 1 << {16: 6, 32: 7}[half]
    parities = rows // 8
    data = [f"INIT_{row:02X}" for row in range(rows)]
    parity = [f"INITP_{row:02X}" for row in range(parities)]
    parameters = "".join(f"  parameter [255:0] {one} = 256'd0;\n" for one in (*data, *parity))
    return f"""
module {name} (
  input CLKARDCLK, CLKBWRCLK, ENARDEN, ENBWREN, REGCEAREGCE, REGCEB,
  input RSTRAMARSTRAM, RSTRAMB, RSTREGARSTREG, RSTREGB, CASCADEINA, CASCADEINB,
  input [{address - 1}:0] ADDRARDADDR, ADDRBWRADDR,
  input [{half - 1}:0] DIADI, DIBDI, input [{half // 8 - 1}:0] DIPADIP, DIPBDIP,
  input [{half // 8 - 1}:0] WEA, input [{half // 4 - 1}:0] WEBWE,
  output reg [{half - 1}:0] DOADO, DOBDO, output reg [{half // 8 - 1}:0] DOPADOP, DOPBDOP
);
  parameter RAM_MODE = "TDP";
  parameter WRITE_MODE_A = "WRITE_FIRST";
  parameter WRITE_MODE_B = "WRITE_FIRST";
  parameter RAM_EXTENSION_A = "NONE";
  parameter RAM_EXTENSION_B = "NONE";
  parameter integer DOA_REG = 0, DOB_REG = 0;
  parameter integer READ_WIDTH_A = 0, READ_WIDTH_B = 0, WRITE_WIDTH_A = 0, WRITE_WIDTH_B = 0;
  parameter INIT_A = 0, INIT_B = 0, SRVAL_A = 0, SRVAL_B = 0;
{parameters}
  localparam [{256 * rows - 1}:0] DATA = {{{", ".join(reversed(data))}}};
  localparam [{256 * parities - 1}:0] PARITY = {{{", ".join(reversed(parity))}}};
  localparam READ_BYTES = READ_WIDTH_A < 9 ? 1 : READ_WIDTH_A / 9;
  localparam WRITE_BYTES = WRITE_WIDTH_B < 9 ? 1 : WRITE_WIDTH_B / 9;
  reg [8:0] words [0:{32 * rows - 1}];
  integer i;
  initial begin
    if (RAM_MODE != "SDP" || DOA_REG != 0 || READ_WIDTH_B != 0 || WRITE_WIDTH_A != 0)
      $fatal(1, "{name}: only one port that reads and one that writes have a model");
    for (i = 0; i < {32 * rows}; i = i + 1) words[i] = {{PARITY[i], DATA[8 * i +: 8]}};
  end
  wire [{2 * half - 1}:0] data = WRITE_WIDTH_B > {half} + {half // 8} ? {{DIBDI, DIADI}} : DIBDI;
  wire [{half // 4 - 1}:0] parity =
    WRITE_WIDTH_B > {half} + {half // 8} ? {{DIPBDIP, DIPADIP}} : DIPBDIP;
  wire [{address - 4}:0] from = ADDRARDADDR[{address - 1}:3] & ~(READ_BYTES - 1);
  wire [{address - 4}:0] to = ADDRBWRADDR[{address - 1}:3] & ~(WRITE_BYTES - 1);
  reg [{2 * half - 1}:0] read;
  reg [{half // 4 - 1}:0] read_parity;
  integer b;
  always @(posedge CLKARDCLK) if (ENARDEN) begin
    if (RSTRAMARSTRAM) $fatal(1, "{name}: a reset has no model");
    read = 0;
    read_parity = 0;
    for (b = 0; b < READ_BYTES; b = b + 1)
      {{read_parity[b], read[8 * b +: 8]}} = words[(from + b) % {32 * rows}];
    if (READ_WIDTH_A < 8)
      read = (read >> (ADDRARDADDR[2:0] & ~(READ_WIDTH_A - 1))) & ((1 << READ_WIDTH_A) - 1);
    {{DOBDO, DOADO}} <= read;
    {{DOPBDOP, DOPADOP}} <= read_parity;
  end
  integer w;
  always @(posedge CLKBWRCLK) if (ENBWREN) begin
    if (WRITE_WIDTH_B >= 9) begin
      for (w = 0; w < WRITE_BYTES; w = w + 1)
        if (WEBWE[w]) words[(to + w) % {32 * rows}] <= {{parity[w], data[8 * w +: 8]}};
    end else if (WEBWE[0]) begin
      for (w = 0; w < WRITE_WIDTH_B; w = w + 1)
        words[to % {32 * rows}][(ADDRBWRADDR[2:0] & ~(WRITE_WIDTH_B - 1)) + w] <= data[w];
    end
  end
endmodule
"""


def _dual_port_ram() -> str:
    """DP16KD of ECP5: two ports of at most 18 bits, or of 36 bits, A to write and B to read."""
    ports = [
        f"input {_bits(f'{bus}{port}', bits)}"
        for port in "AB"
        for bus, bits in (("DI", 18), ("AD", 14), ("CS", 3))
    ]
    ports += [f"input {one}{port}" for port in "AB" for one in ("CE", "OCE", "CLK", "WE", "RST")]
    ports += [f"output {_bits(f'DO{port}', 18)}" for port in "AB"]
    initial = "".join(f"  parameter [319:0] INITVAL_{row:02X} = 320'd0;\n" for row in range(64))
    values = ", ".join(f"INITVAL_{row:02X}" for row in reversed(range(64)))
    sides = ""
    for port, other in ("AB", "BA"):
        sides += f"""
  wire [13:0] address_{port} = {{{_bits(f"AD{port}", 14)}}};
  wire [17:0] given_{port} = {{{_bits(f"DI{port}", 18)}}};
  wire use_{port} = CE{port} && {{{_bits(f"CS{port}", 3)}}} == 0;
  wire writes_{port} = use_{port} && WE{port};
  wire [35:0] data_{port} =
    DATA_WIDTH_{port} == 36 ? {{given_{other}, given_{port}}} : given_{port};
  wire [10:0] base_{port} = address_{port}[13:3] & ~(BYTES_{port} - 1);
  localparam BYTES_{port} = DATA_WIDTH_{port} < 9 ? 1 : DATA_WIDTH_{port} / 9;
  reg [35:0] read_{port}, shown_{port};
  integer r_{port}, w_{port};
  initial shown_{port} = 0;
  always @(posedge CLK{port}) begin
    if (RST{port}) $fatal(1, "DP16KD: a reset has no model");
    if (use_{port} && !WE{port}) begin
      read_{port} = 0;
      for (r_{port} = 0; r_{port} < BYTES_{port}; r_{port} = r_{port} + 1)
        read_{port}[9 * r_{port} +: 9] = words[base_{port} + r_{port}];
      if (DATA_WIDTH_{port} < 8)
        read_{port} = (read_{port} >> (address_{port}[2:0] & ~(DATA_WIDTH_{port} - 1)))
          & ((1 << DATA_WIDTH_{port}) - 1);
      shown_{port} <= read_{port};
    end
    if (writes_{port}) begin
      if (DATA_WIDTH_{port} >= 9) begin
        for (w_{port} = 0; w_{port} < BYTES_{port}; w_{port} = w_{port} + 1)
          if (DATA_WIDTH_{port} == 9 || address_{port}[w_{port}])
            words[base_{port} + w_{port}] <= data_{port}[9 * w_{port} +: 9];
      end else begin
        for (w_{port} = 0; w_{port} < DATA_WIDTH_{port}; w_{port} = w_{port} + 1)
          words[base_{port}][(address_{port}[2:0] & ~(DATA_WIDTH_{port} - 1)) + w_{port}]
            <= data_{port}[w_{port}];
      end
    end
  end
"""
    return f"""
module DP16KD (
  {", ".join(ports)}
);
  parameter DATA_WIDTH_A = 18, DATA_WIDTH_B = 18;
  parameter REGMODE_A = "NOREG", REGMODE_B = "NOREG", RESETMODE = "SYNC";
  parameter ASYNC_RESET_RELEASE = "SYNC", CSDECODE_A = "0b000", CSDECODE_B = "0b000";
  parameter WRITEMODE_A = "NORMAL", WRITEMODE_B = "NORMAL", CLKAMUX = "CLKA", CLKBMUX = "CLKB";
  parameter GSR = "ENABLED", INIT_DATA = "STATIC", WID = 0;
{initial}
  localparam [20479:0] INITIAL = {{{values}}};
  reg [8:0] words [0:2047];
  integer i;
  initial begin
    if (REGMODE_A != "NOREG" || REGMODE_B != "NOREG" || CLKAMUX != "CLKA" || CLKBMUX != "CLKB")
      $fatal(1, "DP16KD: registers after the memory, and inverted clocks, have no model");
    for (i = 0; i < 2048; i = i + 1) words[i] = INITIAL[20 * (i / 2) + 9 * (i % 2) +: 9];
  end
{sides}
  assign {{{_bits("DOA", 18)}}} = DATA_WIDTH_B == 36 ? shown_B[17:0] : shown_A[17:0];
  assign {{{_bits("DOB", 18)}}} = DATA_WIDTH_B == 36 ? shown_B[35:18] : shown_B[17:0];
endmodule
"""


def _multiplier() -> str:
    """MULT18X18D of ECP5 without registers."""
    inputs = ", ".join(_bits(name, 18) for name in "ABC")
    return f"""
module MULT18X18D (
  input {inputs}, SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
  output {_bits("P", 36)}
);
  wire signed [18:0] a = {{SIGNEDA & A17, {_bits("A", 18)}}};
  wire signed [18:0] b = {{SIGNEDB & B17, {_bits("B", 18)}}};
  wire signed [37:0] product = a * b;
  assign {{{_bits("P", 36)}}} = product[35:0];
endmodule
"""


#: Cells whose models in Yosys have no behaviour.
_OWN: Mapping[str, str] = {
    "RAMB18E1": _block_ram("RAMB18E1", 16),
    "RAMB36E1": _block_ram("RAMB36E1", 32),
    "DP16KD": _dual_port_ram(),
    "MULT18X18D": _multiplier(),
}
