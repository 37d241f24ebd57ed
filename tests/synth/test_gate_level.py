"""Programs on mapped engines; models of cells, in Icarus Verilog, against tables and arrays."""

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import vip
from microkernels.suite import choose
from sim_tb.cosim.board import simulated_pll
from sim_tb.cosim.engine import PeSimulation
from sim_tb.cosim.kernels import run_work
from sim_tb.random.comparison import check_programs
from soc.board.families import PLL
from soc.generate.presets import preset
from synth.errors import SynthesisError
from synth.physical.cell_models import fpga_models, library_models
from synth.physical.mapping import mapped_verilog
from synth.physical.targets import CELLS, FLIP_FLOP, find_target, liberty_text
from synth.timing.cell_library import parse_library
from synth.timing.gate_function import FunctionError, truth_table, verilog_expression
from tests.soc.four_states.icarus import icarus

LIBRARY = parse_library(liberty_text())
#: In the first, enables that only save a clock are 1 (:mod:`hdl.clock_gate`).
TARGETS = ("generic", "nangate45", "xc7", "ecp5", "gowin")
PROGRAMS = 300
#: Cell, width of its port that writes, and of its port that reads.
RAMS = (
    *(("RAMB18E1", width, width) for width in (1, 4, 9, 18, 36)),
    *(("RAMB36E1", width, width) for width in (2, 9, 36, 72)),
    ("RAMB18E1", 9, 36),
    # Port A writes, and B reads.
    *(("RAMB36E1 TDP", *widths) for widths in ((36, 36), (18, 18), (9, 9), (4, 4), (36, 9))),
    ("RAMB36E1", 72, 18),
    *(("DP16KD", width, width) for width in (1, 4, 9, 18, 36)),
    ("DP16KD", 36, 9),
    *(("SPX9", width, width) for width in (9, 18, 36)),
    *(("SP", width, width) for width in (1, 4)),
    *(("SDPX9B", *widths) for widths in ((9, 9), (18, 36), (36, 9), (36, 36))),
    *(("SDPB", width, width) for width in (1, 2, 4)),
)


def simulated(text: str, folder: Path) -> str:
    (folder / "bench.v").write_text(text)
    program = str(folder / "bench.vvp")
    subprocess.run([icarus(), "-g2012", "-o", program, folder / "bench.v"], check=True)
    done = subprocess.run([icarus("vvp"), "-n", program], capture_output=True, text=True)
    return done.stdout + done.stderr


def test_functions_in_the_syntax_of_verilog() -> None:
    assert verilog_expression("!(A B) + C' ^ 1") == "(~(A & B) | (~C ^ 1'b1))"
    with pytest.raises(FunctionError, match="'A &' is not a boolean function"):
        verilog_expression("A &")


def test_gates_have_their_tables(tmp_path: Path) -> None:
    lines = ["module bench; reg [5:0] v = 0; reg c = 0; wire q; integer n;"]
    checks = ""
    for number, name in enumerate(CELLS):
        cell = LIBRARY.cells[name]
        table = truth_table(cell.pins["Y"].function, cell.inputs)
        pins = "".join(f".{pin}(v[{place}]), " for place, pin in enumerate(cell.inputs))
        lines.append(f"  wire y{number}; {name} g{number} ({pins}.Y(y{number}));")
        rows = 1 << len(cell.inputs)
        lines.append(f"  wire [{rows - 1}:0] t{number} = {rows}'d{table};")
        checks += f'      if (y{number} !== t{number}[v % {rows}]) $display("{name}", , v);\n'
    lines += [
        f"  {FLIP_FLOP} ff (.C(c), .D(v[0]), .Q(q));",
        f"  initial begin\n    for (n = 0; n < 64; n = n + 1) begin\n      v = n; #1;\n{checks}",
        '      c = 1; #1; if (q !== v[0]) $display("stored", , v);',
        '      v[0] = ~v[0]; #1; c = 0; #1; if (q === v[0]) $display("transparent", , v);',
        '    end\n    $display("done");\n  end\nendmodule\n',
    ]
    models = library_models(LIBRARY, [*CELLS, FLIP_FLOP])
    assert simulated(models + "\n".join(lines), tmp_path) == "done\n"


def test_a_clock_gate_lets_whole_pulses_through(tmp_path: Path) -> None:
    text = liberty_text().rpartition("}")[0] + (
        "cell(ICG) { area : 1; clock_gating_integrated_cell : latch_posedge_precontrol;"
        " pin(CK) { direction : input; clock_gate_clock_pin : true; }"
        " pin(E) { direction : input; } pin(SE) { direction : input; }"
        " pin(GCK) { direction : output; } } }"
    )
    bench = """module bench;
      reg clock, enable, test; wire gated; integer pulses = 0;
      ICG dut(.CK(clock), .E(enable), .SE(test), .GCK(gated));
      always @(posedge gated) pulses = pulses + 1;
      initial begin
        clock = 0; enable = 0; test = 0;
        #1 clock = 1; #1 enable = 1; #1 clock = 0;
        #1 clock = 1; #1 enable = 0; #1 if (!gated) $display("cut"); clock = 0;
        #1 clock = 1; #1 clock = 0; test = 1;
        #1 clock = 1; #1 $display("%0d", pulses);
      end
    endmodule
    """
    assert simulated(library_models(parse_library(text), ["ICG"]) + bench, tmp_path) == "2\n"


def test_a_flip_flop_is_cleared_and_set_between_edges(tmp_path: Path) -> None:
    text = liberty_text().rpartition("}")[0] + (
        'cell(RS) { area : 1; ff(IQ, IQN) { clocked_on : "C"; next_state : "D"; clear : "!R";'
        ' preset : "S"; } pin(C) { direction : input; } pin(D) { direction : input; }'
        " pin(R) { direction : input; } pin(S) { direction : input; }"
        ' pin(Q) { direction : output; function : "IQ"; }'
        ' pin(QN) { direction : output; function : "IQN"; } } }'
    )
    steps = (
        # Clock, data, reset (low), set -> state.
        ((0, 1, 1, 0), "x"), ((1, 1, 1, 0), "1"), ((1, 1, 0, 0), "0"), ((0, 1, 0, 0), "0"),
        ((1, 1, 0, 0), "0"), ((0, 1, 1, 0), "0"), ((0, 0, 1, 1), "1"), ((1, 0, 1, 1), "1"),
        ((0, 0, 1, 0), "1"), ((1, 0, 1, 0), "0"),
    )  # fmt: skip
    lines = ["module bench; reg c, d, r, s; wire q, n; RS dut(.C(c), .D(d), .R(r), .S(s), .Q(q),"]
    lines.append("  .QN(n)); initial begin")
    for (c, d, r, s), _ in steps:
        lines.append(f'    c = {c}; d = {d}; r = {r}; s = {s}; #1 $write("%b", q);')
        lines.append('    if (n !== ~q) $display("both");')
    models = library_models(parse_library(text), ["RS"])
    shown = simulated(models + "\n".join([*lines, "  end", "endmodule\n"]), tmp_path)
    assert shown.strip() == "".join(state for _, state in steps)


def test_a_latch_has_no_model() -> None:
    text = liberty_text().rpartition("}")[0] + (
        'cell(LATCH) { area : 1; latch(Q1, Q2) { enable : "E"; data_in : "D"; }'
        " pin(E) { direction : input; } pin(D) { direction : input; }"
        ' pin(Q) { direction : output; function : "Q1"; } } }'
    )
    with pytest.raises(SynthesisError, match="LATCH can't be simulated: it is not a gate or a"):
        library_models(parse_library(text), ["LATCH"])
    with pytest.raises(SynthesisError, match="cells DP16KD2 of ecp5 have no model"):
        fpga_models("ecp5", ["DP16KD2"])


def accesses(size: int, write: int, read: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Random accesses: word and bytes that are written, value, word that is read, and its value.

    Bytes have nine bits, the ninth for parity; ports of less than nine bits have no parity.
    """
    rng = random.Random(f"{size} {write} {read}")
    kept = [0] * (9 * size)

    def places(width: int, word: int) -> list[int]:
        if width >= 9:
            return [width * word + bit for bit in range(width)]
        byte, part = divmod(width * word, 8)
        return [9 * byte + part + bit for bit in range(width)]

    # A few places, so that many are met again.
    near = 72 * rng.sample(range(size // 8), 3)
    for _ in range(150):
        value, enabled = rng.getrandbits(write), rng.getrandbits(max(write // 9, 1))
        block = rng.choice(near)
        to, start = (
            block * 64 // width + rng.randrange(64 // width)
            if width < 9
            else block * 72 // width + rng.randrange(72 // width)
            for width in (write, read)
        )
        shown = sum(kept[place] << bit for bit, place in enumerate(places(read, start)))
        yield to, enabled, value, start, shown
        for bit, place in enumerate(places(write, to)):
            if enabled >> bit // 9 & 1:
                kept[place] = value >> bit & 1


def parted(value: int, width: int) -> tuple[int, int]:
    """Data and parity bits of a word."""
    if width < 9:
        return value, 0
    count = range(width // 9)
    data = sum((value >> 9 * n & 255) << 8 * n for n in count)
    return data, sum((value >> 9 * n + 8 & 1) << n for n in count)


def xilinx_bench(number: int, name: str, write: int, read: int) -> str:
    cell, _, mode = name.partition(" ")
    half, bits = (16, 14) if cell == "RAMB18E1" else (32, 16)
    parts = half // 8
    low = f"(di[{half - 1}:0]), .DIPADIP(dip[{parts - 1}:0])"
    high = f"(di[{2 * half - 1}:{half}]), .DIPBDIP(dip[{2 * parts - 1}:{parts}])"
    if mode:
        settings = f'"TDP"), .WRITE_WIDTH_A({write}), .READ_WIDTH_B({read})'
        pins = [
            f".ADDRARDADDR(to), .ADDRBWRADDR(from), .WEA(we), .WEBWE(0), .DIADI{low}",
            f".DOBDO(dout[{half - 1}:0]), .DOPBDOP(dop[{parts - 1}:0])",
        ]
    else:
        settings = f'"SDP"), .READ_WIDTH_A({read}), .WRITE_WIDTH_B({write})'
        second = high if write > 9 * parts else low.replace("DIPADIP", "DIPBDIP")
        pins = [
            f".ADDRARDADDR(from), .ADDRBWRADDR(to), .WEA(0), .WEBWE(we), .DIADI{low}",
            f".DIBDI{second}, .DOADO(dout[{half - 1}:0]), .DOPADOP(dop[{parts - 1}:0])",
            f".DOBDO(dout[{2 * half - 1}:{half}]), .DOPBDOP(dop[{2 * parts - 1}:{parts}])",
        ]
    shown_bits = f"dout[{half - 1}:0]" if mode else "dout"
    shown_parity = f"dop[{parts - 1}:0]" if mode else "dop"
    lines = [
        f"module bench{number}; reg clk = 0; reg [{bits - 1}:0] from, to;",
        f"  reg [{2 * half - 1}:0] di; reg [{2 * parts - 1}:0] dip, we;",
        f"  wire [{2 * half - 1}:0] dout; wire [{2 * parts - 1}:0] dop;",
        f"  {cell} #(.RAM_MODE({settings}) ram (",
        *(f"    {one}," for one in pins),
        "    .CLKARDCLK(clk), .CLKBWRCLK(clk), .ENARDEN(1'b1), .ENBWREN(1'b1),",
        "    .RSTRAMARSTRAM(1'b0), .RSTRAMB(1'b0));",
        "  initial begin",
    ]
    steps = {width: width if width < 9 else width * 8 // 9 for width in (write, read)}
    for to, enabled, value, start, shown in accesses(half * 128, write, read):
        (data, parity), (out, out_parity) = parted(value, write), parted(shown, read)
        lines += [
            f"    from = {start * steps[read]}; to = {to * steps[write]}; we = {enabled};"
            f" di = 64'd{data}; dip = {parity}; #1 clk = 1; #1 clk = 0;",
            f"    if ({shown_bits} !== 64'd{out} || {shown_parity} !== {out_parity})"
            f' $display("{name} {write} {read} at {start}", , dout, , dop);',
        ]
    return "\n".join([*lines, "  end", "endmodule", ""])


def lattice_bench(number: int, write: int, read: int) -> str:
    def pins(prefix: str, count: int, wire: str) -> str:
        return "".join(f".{prefix}{bit}({wire}[{bit}]), " for bit in range(count))

    halves = "".join(f".DIB{bit}(di[{bit + 18}]), .DOA{bit}(low[{bit}]), " for bit in range(18))
    lines = [
        f"module bench{number}; reg clk = 0; reg [13:0] from, to; reg [35:0] di; reg we = 1;",
        "  wire [17:0] low, high;",
        f"  DP16KD #(.DATA_WIDTH_A({write}), .DATA_WIDTH_B({read})) ram (",
        f"    {pins('ADA', 14, 'to')}{pins('ADB', 14, 'from')}{pins('DIA', 18, 'di')}{halves}",
        f"    {pins('DOB', 18, 'high')}.CSA0(1'b0), .CSA1(1'b0), .CSA2(1'b0), .CSB0(1'b0),",
        "    .CSB1(1'b0), .CSB2(1'b0), .CLKA(clk), .CLKB(clk), .CEA(1'b1), .CEB(1'b1), .WEA(we),",
        "    .WEB(1'b0), .RSTA(1'b0), .RSTB(1'b0), .OCEA(1'b1), .OCEB(1'b1));",
        "  initial begin",
    ]
    steps = {width: width if width < 9 else width * 8 // 9 for width in (write, read)}
    for to, enabled, value, start, shown in accesses(2048, write, read):
        # Wide words are enabled in the low bits of the address.
        place = to * steps[write] + (enabled if write >= 18 else 0)
        we = 1 if write >= 18 else enabled
        out = "{high, low}" if read == 36 else "high"
        lines += [
            f"    from = {start * steps[read]}; to = {place}; we = {we}; di = 36'd{value};"
            " #1 clk = 1; #1 clk = 0;",
            f"    if ({out} !== 36'd{shown})"
            f' $display("DP16KD {write} {read} at {start}", , {out});',
        ]
    return "\n".join([*lines, "  end", "endmodule", ""])


def gowin_bench(number: int, cell: str, write: int, read: int) -> str:
    """A single port writes and then reads."""
    single = not cell.startswith("SD")
    widths = f".BIT_WIDTH({read})" if single else f".BIT_WIDTH_0({write}), .BIT_WIDTH_1({read})"
    pins = (
        ".CLK(clk), .CE(1'b1), .WRE(we), .RESET(1'b0), .AD(we ? to : from), .BLKSEL(3'b0)"
        if single
        else ".CLKA(clk), .CLKB(clk), .CEA(we), .CEB(!we), .RESETA(1'b0), .RESETB(1'b0), .ADA(to),"
        " .ADB(from), .BLKSELA(3'b0), .BLKSELB(3'b0)"
    )
    lines = [
        f"module bench{number}; reg clk = 0, we; reg [13:0] from, to; reg [35:0] di;",
        f"  wire [35:0] dout; {cell} #({widths}) ram ({pins}, .OCE(1'b1), .DI(di), .DO(dout));",
        "  initial begin",
    ]
    steps = {width: width if width < 9 else width * 8 // 9 for width in (write, read)}
    for to, enabled, value, start, shown in accesses(2048, write, read):
        # Wide words are enabled in the low bits of the address.
        place = to * steps[write] + (enabled if write >= 18 else 0)
        we = 1 if write >= 18 else enabled
        lines += [
            f"    from = {start * steps[read]}; to = {place}; di = 36'd{value};"
            f" we = 0; #1 clk = 1; #1 clk = 0; we = {we};",
            f"    if (dout[{read - 1}:0] !== 36'd{shown})"
            f' $display("{cell} {write} {read} at {start}", , dout);',
            "    #1 clk = 1; #1 clk = 0;",
        ]
    return "\n".join([*lines, "  end", "endmodule", ""])


def test_block_rams_are_arrays(tmp_path: Path) -> None:
    text = fpga_models("xc7", ["RAMB18E1", "RAMB36E1"]) + fpga_models("ecp5", ["DP16KD"])
    text += fpga_models("gowin", ["SP", "SPX9", "SDPB", "SDPX9B"])
    for number, (cell, write, read) in enumerate(RAMS):
        if cell == "DP16KD":
            text += lattice_bench(number, write, read)
        elif cell.startswith("S"):
            text += gowin_bench(number, cell, write, read)
        else:
            text += xilinx_bench(number, cell, write, read)
    assert simulated(text, tmp_path) == ""


def test_every_cell_that_gowin_maps_to_has_a_model() -> None:
    target = find_target("gowin")
    cells = {cell for kinds in target.types.values() for cell in kinds} - {"DPB", "DPX9B"}
    models = fpga_models("gowin", [*cells, *target.free, "IBUF", "OBUF", "rPLL"])
    # Wide multiplexers are made of these.
    assert "module MUX2 (" in models
    assert models.count("\nmodule ") + 1 == models.count("endmodule")


@pytest.mark.parametrize("sdram", [1, 2])
def test_a_pll_makes_the_clocks_of_an_sdram(tmp_path: Path, sdram: int) -> None:
    """With the settings that ecppll has for 60 MHz and once or twice that."""
    settings = f".CLKOP_DIV(10), .CLKOP_CPHASE(4), .CLKOS_DIV({10 // sdram}), .CLKOS_CPHASE(6)"
    settings += f", .CLKOS_FPHASE(4), .CLKOS2_DIV({10 // sdram}), .CLKOS2_CPHASE(4)"
    text = f"""module bench; reg clk = 0; wire a, b, c, p, q, r;
      EHXPLLL #({settings}, .CLKOS_ENABLE("ENABLED")) m (
        .CLKI(clk), .CLKOP(a), .CLKOS(b), .CLKOS2(c));
      {PLL} n (.clkin(clk), .clkout0(p), .clkout1(q), .clkout2(r));
      initial repeat (20) begin
        #1 clk = !clk; #1 if ({{a, b, c}} !== {{p, q, r}}) $display(a, b, c,, p, q, r);
      end
    endmodule
    """
    assert simulated(fpga_models("ecp5", ["EHXPLLL"]) + simulated_pll(sdram) + text, tmp_path) == ""


def test_multipliers_multiply(tmp_path: Path) -> None:
    rng = random.Random(1)
    lines = ["module bench; reg [17:0] a, b; reg s, t; wire [35:0] p, q;", "  MULT18X18D m ("]
    for bit in range(18):
        lines.append(f"    .A{bit}(a[{bit}]), .B{bit}(b[{bit}]),")
    lines += [f"    .P{bit}(p[{bit}])," for bit in range(36)]
    lines += ["    .SIGNEDA(s), .SIGNEDB(t));"]
    lines += ["  MULT18X18 n (.A(a), .B(b), .ASIGN(s), .BSIGN(t), .DOUT(q));", "  initial begin"]
    for _ in range(100):
        a, b, s, t = (rng.getrandbits(bits) for bits in (18, 18, 1, 1))
        signed = [n - (n >> 17 << 18) if flag else n for n, flag in ((a, s), (b, t))]
        product = signed[0] * signed[1] & (1 << 36) - 1
        lines.append(f"    a = {a}; b = {b}; s = {s}; t = {t}; #1;")
        for found in "pq":
            lines.append(f"    if ({found} !== 36'd{product}) $display({a}, , {b});")
    lines += ["  end", "endmodule", ""]
    models = fpga_models("ecp5", ["MULT18X18D"]) + fpga_models("gowin", ["MULT18X18"])
    assert simulated(models + "\n".join(lines), tmp_path) == ""


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_a_mapped_engine_runs_programs(target: str) -> None:
    config, netlist = mapped_verilog(preset("pe"), target)
    report = check_programs(config, programs=PROGRAMS, seed=46, netlist=netlist, disturbed=0.2)
    assert (report.programs, report.different) == (PROGRAMS, ())
    assert report.faulting > PROGRAMS // 10
    scene = vip.stereo_pair(width=8, height=4, labels=8)
    ran = vip.cosim_bp("pe", scene, iterations=2, on="netlist", target=target)
    assert ran.match
    assert ran.outcome.cycles == vip.cosim_bp("pe", scene, iterations=2, on="model").outcome.cycles


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_a_trimmed_engine_does_so_too(target: str) -> None:
    (application,) = choose(["bp"])
    trimmed = vip.trim("bp", preset("pe"), check=False, area=False).cut.trimmed
    config, netlist = mapped_verilog(trimmed, target)
    with PeSimulation(config, netlist=netlist) as simulation:
        for job in application.jobs:
            assert run_work(job, simulation).match


@pytest.mark.slow
def test_one_wrong_cell_is_found() -> None:
    """A NOR gate instead of a NAND gate of the scalar unit."""
    config, netlist = mapped_verilog(preset("pe-small"), "generic")
    before, scalar, after = netlist.partition("\nmodule scalar(")
    assert scalar
    wrong = before + scalar + after.replace("  NAND2 ", "  NOR2 ", 1)
    report = check_programs(config, programs=30, seed=46, netlist=wrong)
    assert report.different
