"""Verilog models of mapped cells, for simulation: of a library by their Liberty functions, of
FPGAs by Yosys's models, and here where those have no behaviour."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from soc.board.sdram import IO_CELLS
from synth.errors import SynthesisError
from synth.timing.cell_library import Cell, CellLibrary
from synth.timing.gate_function import verilog_expression

#: Target -> files of Yosys with its cells; a cell is in the first that has it.
_SHARED: Mapping[str, tuple[str, ...]] = {
    "xc7": ("xilinx/cells_sim.v",),
    "ecp5": ("lattice/common_sim.vh", "lattice/ccu2c_sim.vh"),
    "gowin": ("gowin/cells_sim.v",),
}
_MODULE = re.compile(r"^module (\w+)\b.*?^\s*endmodule\b[^\n]*\n", re.MULTILINE | re.DOTALL)
_INSTANCE = re.compile(r"^\s+(\w+)\s+(?:#\(|\w+\s*\()", re.MULTILINE)


def library_models(library: CellLibrary, names: Iterable[str]) -> str:
    """Models of the cells ``names``.

    Raises:
        SynthesisError: a cell is not a gate, a clock gate or a flip-flop.
    """
    return "".join(_library_model(library.cells[name]) for name in sorted(names))


def _library_model(cell: Cell) -> str:
    if cell.gates_clock:
        return _clock_gate_model(cell)
    state = cell.state
    if cell.sequential and state is None:
        raise SynthesisError(
            f"a cell {cell.name} can't be simulated: it is not a gate or a flip-flop"
        )
    ports = [f"input {pin}" for pin in cell.inputs] + [f"output {pin}" for pin in cell.outputs]
    lines = [f"module {cell.name} ({', '.join(ports)});"]
    if state is not None:
        clock, following, clear, preset = map(
            verilog_expression, (state.clock, state.next_state, state.clear, state.preset)
        )
        lines += [f"  reg {state.name};", f"  wire clears = {clear}, sets = {preset};"]
        events, chosen = f"posedge {clock}", following
        for wire, function, value in (("sets", preset, 1), ("clears", clear, 0)):
            if function != "1'b0":
                events, chosen = f"{events} or posedge {wire}", f"{wire} ? 1'b{value} : {chosen}"
        lines.append(f"  always @({events}) {state.name} <= {chosen};")
        if state.inverse:
            lines.append(f"  wire {state.inverse} = ~{state.name};")
    lines += [
        f"  assign {pin} = {verilog_expression(cell.pins[pin].function)};" for pin in cell.outputs
    ]
    return "\n".join([*lines, "endmodule\n"])


def _clock_gate_model(cell: Cell) -> str:
    """A latch that is open while the clock is low, so that the gated clock has whole pulses."""
    (clock,) = (pin for pin in cell.inputs if cell.pins[pin].clock)
    (output,) = cell.outputs
    enables = [pin for pin in cell.inputs if pin != clock]
    ports = [f"input {pin}" for pin in cell.inputs] + [f"output {output}"]
    return (
        f"module {cell.name} ({', '.join(ports)});\n"
        "  reg opened;\n"
        f"  always @* if (!{clock}) opened = {' | '.join(enables)};\n"
        f"  assign {output} = {clock} & opened;\n"
        "endmodule\n"
    )


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


def _port(port: str, clock: str, rows: int) -> str:
    """A port of the RAM ``words`` of ``rows`` bytes of nine bits.

    Words are bits or bytes, a power of two of them. If ``reads_P``, it reads ``READ_P`` bits; of
    ``WRITE_P`` bits, it writes the bytes ``we_P``. Addresses are those of bits, without the ninth.
    """
    text = """
  localparam FROM_P = READ_P < 9 ? 1 : READ_P / 9, TO_P = WRITE_P < 9 ? 1 : WRITE_P / 9;
  reg [71:0] read_P, shown_P;
  integer r_P, w_P;
  initial shown_P = 0;
  always @(posedge CLOCK) begin
    if (reads_P) begin
      read_P = 0;
      for (r_P = 0; r_P < FROM_P; r_P = r_P + 1)
        read_P[9 * r_P +: 9] = words[((at_P[15:3] & ~(FROM_P - 1)) + r_P) % ROWS];
      if (READ_P < 8)
        read_P = (read_P >> (at_P[2:0] & ~(READ_P - 1))) & ((1 << READ_P) - 1);
      shown_P <= read_P;
    end
    if (WRITE_P >= 9) begin
      for (w_P = 0; w_P < TO_P; w_P = w_P + 1)
        if (we_P[w_P]) words[((at_P[15:3] & ~(TO_P - 1)) + w_P) % ROWS] <= in_P[9 * w_P +: 9];
    end else if (we_P[0]) begin
      for (w_P = 0; w_P < WRITE_P; w_P = w_P + 1)
        words[at_P[15:3] % ROWS][(at_P[2:0] & ~(WRITE_P - 1)) + w_P] <= in_P[w_P];
    end
  end
"""
    text = re.sub(r"_P\b", f"_{port}", text)
    return text.replace("CLOCK", clock).replace("ROWS", str(rows))


def _block_ram(name: str, half: int) -> str:
    """A block RAM of Xilinx, of which a port reads or writes, or reads first.

    Parameters:
        half: data bits of a port; both are the halves of the widest word of a simple dual-port RAM.
    """
    address, rows = {16: (14, 2048), 32: (16, 4096)}[half]
    parts = half // 8
    data = [f"INIT_{row:02X}" for row in range(rows // 32)]
    parity = [f"INITP_{row:02X}" for row in range(rows // 256)]
    initial = "".join(f"  parameter [255:0] {one} = 256'd0;\n" for one in (*data, *parity))
    return f"""
module {name} (
  input CLKARDCLK, CLKBWRCLK, ENARDEN, ENBWREN, REGCEAREGCE, REGCEB,
  input RSTRAMARSTRAM, RSTRAMB, RSTREGARSTREG, RSTREGB, CASCADEINA, CASCADEINB,
  input [{address - 1}:0] ADDRARDADDR, ADDRBWRADDR,
  input [{half - 1}:0] DIADI, DIBDI, input [{parts - 1}:0] DIPADIP, DIPBDIP,
  input [{parts - 1}:0] WEA, input [{2 * parts - 1}:0] WEBWE,
  output [{half - 1}:0] DOADO, DOBDO, output [{parts - 1}:0] DOPADOP, DOPBDOP
);
  parameter RAM_MODE = "TDP", WRITE_MODE_A = "WRITE_FIRST", WRITE_MODE_B = "WRITE_FIRST";
  parameter RAM_EXTENSION_A = "NONE", RAM_EXTENSION_B = "NONE";
  parameter DOA_REG = 0, DOB_REG = 0, INIT_A = 0, INIT_B = 0, SRVAL_A = 0, SRVAL_B = 0;
  parameter READ_WIDTH_A = 0, READ_WIDTH_B = 0, WRITE_WIDTH_A = 0, WRITE_WIDTH_B = 0;
{initial}
  localparam [{8 * rows - 1}:0] DATA = {{{", ".join(reversed(data))}}};
  localparam [{rows - 1}:0] PARITY = {{{", ".join(reversed(parity))}}};
  localparam READ_A = READ_WIDTH_A, READ_B = READ_WIDTH_B;
  localparam WRITE_A = WRITE_WIDTH_A, WRITE_B = WRITE_WIDTH_B;
  localparam WIDE_READ = READ_A > {9 * parts}, WIDE_WRITE = WRITE_B > {9 * parts};
  reg [8:0] words [0:{rows - 1}];
  integer i;
  initial begin
    if (DOA_REG != 0 || DOB_REG != 0 || RAM_EXTENSION_A != "NONE" || RAM_EXTENSION_B != "NONE"
        || (READ_A != 0 && WRITE_A != 0 && WRITE_MODE_A != "READ_FIRST")
        || (READ_B != 0 && WRITE_B != 0 && WRITE_MODE_B != "READ_FIRST"))
      $fatal(1, "{name}: registers, cascades, and ports that write first have no model");
    for (i = 0; i < {rows}; i = i + 1) words[i] = {{PARITY[i], DATA[8 * i +: 8]}};
  end
  always @(posedge CLKARDCLK)
    if (RSTRAMARSTRAM || RSTRAMB) $fatal(1, "{name}: a reset has no model");
  wire [{2 * half - 1}:0] di = WIDE_WRITE ? {{DIBDI, DIADI}} : DIBDI;
  wire [{2 * parts - 1}:0] dip = WIDE_WRITE ? {{DIPBDIP, DIPADIP}} : DIPBDIP;
  wire [71:0] in_A, in_B;
  wire [15:0] at_A = ADDRARDADDR, at_B = ADDRBWRADDR;
  wire reads_A = ENARDEN && READ_A != 0, reads_B = ENBWREN && READ_B != 0;
  wire [7:0] we_A = ENARDEN && WRITE_A != 0 ? WEA : 0, we_B = ENBWREN && WRITE_B != 0 ? WEBWE : 0;
{_port("A", "CLKARDCLK", rows)}{_port("B", "CLKBWRCLK", rows)}
  wire [71:0] out_B = WIDE_READ ? shown_A >> {9 * parts} : shown_B;
  genvar g;
  generate
    for (g = 0; g < {2 * parts}; g = g + 1) assign in_B[9 * g +: 9] = {{dip[g], di[8 * g +: 8]}};
    for (g = 0; g < {parts}; g = g + 1) begin
      assign in_A[9 * g +: 9] = {{DIPADIP[g], DIADI[8 * g +: 8]}};
      assign {{DOPADOP[g], DOADO[8 * g +: 8]}} = shown_A[9 * g +: 9];
      assign {{DOPBDOP[g], DOBDO[8 * g +: 8]}} = out_B[9 * g +: 9];
    end
  endgenerate
endmodule
"""


def _lattice_side(port: str, other: str) -> str:
    """A port of DP16KD. Wide words are enabled in the low bits of their address."""
    return f"""
  localparam READ_{port} = DATA_WIDTH_{port}, WRITE_{port} = DATA_WIDTH_{port};
  wire [15:0] at_{port} = {{{_bits(f"AD{port}", 14)}}};
  wire [35:0] given_{port} = {{{_bits(f"DI{port}", 18)}}};
  wire [71:0] in_{port} = READ_{port} == 36 ? {{given_{other}[17:0], given_{port}[17:0]}}
    : given_{port};
  wire use_{port} = CE{port} && {{{_bits(f"CS{port}", 3)}}} == 0;
  wire reads_{port} = use_{port} && !WE{port};
  wire [7:0] we_{port} = !(use_{port} && WE{port}) ? 0 : WRITE_{port} > 9 ? at_{port}[3:0] : 1;
  always @(posedge CLK{port}) if (RST{port}) $fatal(1, "DP16KD: a reset has no model");
{_port(port, f"CLK{port}", 2048)}"""


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
{_lattice_side("A", "B")}{_lattice_side("B", "A")}
  assign {{{_bits("DOA", 18)}}} = DATA_WIDTH_B == 36 ? shown_B[17:0] : shown_A[17:0];
  assign {{{_bits("DOB", 18)}}} = DATA_WIDTH_B == 36 ? shown_B[35:18] : shown_B[17:0];
endmodule
"""


def _gowin_ram(name: str) -> str:
    """SP, SPX9, SDPB or SDPX9B of Gowin without registers: with one port, or A to write and B to
    read; bytes of those with a 9 have as many bits. Wide words are enabled in the low bits of their
    address."""
    byte, single = 9 if "9" in name else 8, not name.startswith("SD")
    ports = [("", "")] if single else [("A", "_0"), ("B", "_1")]
    words = 4 * byte
    pins = [
        f"input CLK{port}, CE{port}, RESET{port}, input [13:0] AD{port}, input [2:0] BLKSEL{port}"
        for port, _ in ports
    ]
    pins += [f"input OCE, input [{words - 1}:0] DI, output [{words - 1}:0] DO"]
    pins += ["input WRE"] if single else []
    settings = [f"BIT_WIDTH{number} = {words}, BLK_SEL{number} = 0" for _, number in ports]
    settings += ["READ_MODE = 0, WRITE_MODE = 0", 'RESET_MODE = "SYNC"']
    rows = [f"INIT_RAM_{row:02X}" for row in range(64)]
    initial = "".join(f"  parameter [{32 * byte - 1}:0] {row} = 0;\n" for row in rows)
    body = ""
    for port, number in ports:
        width, letter = f"BIT_WIDTH{number}", port or "A"
        writes = {"": "CE && WRE", "A": "CEA", "B": "1'b0"}[port]
        reads = {"": "CE && (!WRE || WRITE_MODE == 2)", "A": "1'b0", "B": "CEB"}[port]
        body += f"""
  localparam READ_{letter} = {width} < 8 ? {width} : {width} / {byte} * 9;
  localparam WRITE_{letter} = READ_{letter};
  wire [15:0] at_{letter} = AD{port};
  wire reads_{letter} = {reads};
  wire [7:0] we_{letter} = !({writes}) ? 0 : WRITE_{letter} > 9 ? AD{port}[3:0] : 1;
  wire [71:0] in_{letter} = given;
  always @(posedge CLK{port}) if (RESET{port}) $fatal(1, "{name}: a reset has no model");
{_port(letter, f"CLK{port}", 2048)}"""
    shown = f"shown_{'A' if single else 'B'}"
    return f"""
module {name} (
  {", ".join(pins)}
);
  parameter {", ".join(settings)};
{initial}
  localparam [{2048 * byte - 1}:0] INITIAL = {{{", ".join(reversed(rows))}}};
  reg [8:0] words [0:2047];
  wire [35:0] given;
  integer i;
  initial begin
    if (READ_MODE != 0 || WRITE_MODE == 1)
      $fatal(1, "{name}: registers after the memory, and ports that write first, have no model");
    for (i = 0; i < 2048; i = i + 1) words[i] = INITIAL[{byte} * i +: {byte}];
  end
  genvar g;
  generate
    for (g = 0; g < 4; g = g + 1) begin
      assign given[9 * g +: 9] = DI[{byte} * g +: {byte}];
      assign DO[{byte} * g +: {byte}] = {shown}[9 * g +: {byte}];
    end
  endgenerate
{body}
endmodule
"""


def _gowin_multiplier(bits: int) -> str:
    """A multiplier of Gowin without registers and chains."""
    name = f"MULT{bits}X{bits}"
    chains = "" if bits == 36 else f"input [{bits - 1}:0] SIA, SIB, input ASEL, BSEL, "
    outputs = "" if bits == 36 else f", output [{bits - 1}:0] SOA, SOB"
    return f"""
module {name} (
  input [{bits - 1}:0] A, B, {chains}input ASIGN, BSIGN, CE, CLK, RESET,
  output [{2 * bits - 1}:0] DOUT{outputs}
);
  wire signed [{bits}:0] a = {{ASIGN & A[{bits - 1}], A}};
  wire signed [{bits}:0] b = {{BSIGN & B[{bits - 1}], B}};
  wire signed [{2 * bits + 1}:0] product = a * b;
  assign DOUT = product[{2 * bits - 1}:0];
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


_PLL_OUTPUTS = ("CLKOP", "CLKOS", "CLKOS2")
_PLL_INPUTS = "CLKI, CLKFB, PHASESEL0, PHASESEL1, PHASEDIR, PHASESTEP, PHASELOADREG"


def _lattice_pll() -> str:
    """The PLL of ECP5. With one output, that is the input; with three, the input changes four times
    in a cycle of the first."""
    divisors = "".join(
        f"  parameter {one}_DIV = 8, {one}_CPHASE = 0, {one}_FPHASE = 0;\n"
        f'  parameter {one}_ENABLE = "DISABLED", OUTDIVIDER_MUX{mux} = "DIV{mux}";\n'
        for one, mux in zip(_PLL_OUTPUTS, "ABC", strict=True)
    )
    levels = ", ".join(
        f"{one} = level(at, {one}_DIV, 8 * ({one}_CPHASE - CLKOP_CPHASE) + {one}_FPHASE)"
        for one in _PLL_OUTPUTS[1:]
    )
    return f"""
module EHXPLLL (
  input {_PLL_INPUTS}, STDBY, PLLWAKESYNC, RST, ENCLKOP,
  output {", ".join(_PLL_OUTPUTS)}, CLKINTFB, LOCK
);
  parameter CLKI_DIV = 1, CLKFB_DIV = 1, OUTDIVIDER_MUXD = "DIVD", FEEDBK_PATH = "CLKOP";
  parameter DPHASE_SOURCE = "DISABLED", STDBY_ENABLE = "DISABLED", PLLRST_ENA = "DISABLED";
  parameter INTFB_WAKE = "DISABLED";
{divisors}
  reg [1:0] at = 3;
  always @(posedge CLKI or negedge CLKI) at <= at + 1;
  // In the middle of a quarter, in eighths of a cycle of the oscillator.
  function level(input [1:0] quarter, input integer divisor, delay);
    level = (CLKOP_DIV * (2 * quarter + 1) - delay + 1024 * divisor) % (8 * divisor) < 4 * divisor;
  endfunction
  assign CLKOP = CLKOS_ENABLE == "ENABLED" ? !at[1] : CLKI, LOCK = 1'b1;
  assign {levels};
endmodule
"""


#: A pin of ECP5. Yosys's model compares with an open pin, which Verilator can't.
_PIN = """
module TRELLIS_IO (inout B, input I, T, output O);
  parameter DIR = "INPUT";
  initial if (DIR != "BIDIR") $fatal(1, "TRELLIS_IO: pins of one direction have no model");
  assign B = T ? 1'bz : I, O = B;
endmodule
"""

#: The PLL of Gowin, whose clock is the input's.
_RPLL = """
module rPLL (
  input CLKIN, CLKFB, RESET, RESET_P, input [5:0] FBDSEL, IDSEL, ODSEL, input [3:0] PSDA, FDLY,
  input [3:0] DUTYDA, output CLKOUT, LOCK, CLKOUTP, CLKOUTD, CLKOUTD3
);
  parameter FCLKIN = "27", IDIV_SEL = 0, FBDIV_SEL = 0, ODIV_SEL = 8;
  assign CLKOUT = CLKIN, LOCK = 1'b1;
endmodule
"""

#: Cells whose models in Yosys have no behaviour.
_OWN: Mapping[str, str] = {
    "RAMB18E1": _block_ram("RAMB18E1", 16),
    "RAMB36E1": _block_ram("RAMB36E1", 32),
    "DP16KD": _dual_port_ram(),
    "MULT18X18D": _multiplier(),
    "EHXPLLL": _lattice_pll(),
    "TRELLIS_IO": _PIN,
    "ODDRX1F": IO_CELLS["ODDRX1F"],
    "rPLL": _RPLL,
    **{name: _gowin_ram(name) for name in ("SP", "SPX9", "SDPB", "SDPX9B")},
    **{f"MULT{bits}X{bits}": _gowin_multiplier(bits) for bits in (9, 18, 36)},
}
