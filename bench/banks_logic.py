"""Prototype: gates of the logic around 16 banks with two ports for reads and writes.

python -m bench.banks_logic RING LATE AHEAD   # each 0 or 1
"""

import sys
from synth.physical.targets import find_cells, find_target
from synth.physical.yosys import Run, run

RING, DELAY, QUEUE = (int(x) for x in sys.argv[1:4])
V = f"""
module sp(input clk, input rst,
  input [4:0] req,            // first second store result load
  input [11:0] a0, a1, a2, a3, a4,
  input [7:0] s3, s4, input [63:0] d3, d4,
  input behind, input urgent_load, input urgent_store,
  input [1:0] word, input replay, input keep,
  output [4:0] granted,
  input [127:0] q_even, q_odd,   // read data: port 1, port 0 of eight lanes
  output reg [7:0] adr_e0, adr_e1, adr_o0, adr_o1,
  output reg [7:0] en_e0, en_e1, en_o0, en_o1, output reg we_e0, we_e1, we_o0, we_o1,
  output reg [63:0] w_e0, w_e1, w_o0, w_o1,
  output [63:0] first, second, store);
  // results wait
  wire [11:0] r_a; wire [7:0] r_s; wire [63:0] r_d; wire r_v, r_late;
  wire r_take;
"""
if DELAY:
    V += """
  reg [83:0] e0, e1; reg v0, v1; reg [1:0] age;
  wire [83:0] come = {a3, s3, d3};
  assign {r_a, r_s, r_d} = v0 ? e0 : come;
  assign r_v = v0 | req[3];
  assign r_late = v0 & age[1];
  always @(posedge clk) begin
    if (rst) begin v0 <= 0; v1 <= 0; age <= 0; end else begin
      age <= r_take | ~r_v ? 0 : age + 1;
      if (v0 & r_take) begin v0 <= v1 | req[3]; v1 <= v1 & req[3]; end
      else if (v0) v1 <= v1 | req[3];
      else v0 <= req[3] & ~r_take;
    end
    if (req[3] & (v0 & ~r_take ? ~v1 : v1)) e1 <= come;
    if (r_take ? v1 : ~v0 & req[3]) e0 <= v1 ? e1 : come;
    else if (v0 & r_take & req[3]) e0 <= come;
  end
"""
else:
    V += """
  assign {r_a, r_s, r_d} = {a3, s3, d3}; assign r_v = req[3]; assign r_late = 1;
"""
V += """
  function [63:0] rotl(input [63:0] d, input [2:0] n); reg [63:0] t; begin
    t = n[0] ? {d[55:0], d[63:56]} : d; t = n[1] ? {t[47:0], t[63:48]} : t; rotl = n[2] ? {t[31:0], t[63:32]} : t; end endfunction
  function [63:0] rotr(input [63:0] d, input [2:0] n); reg [63:0] t; begin
    t = n[0] ? {d[7:0], d[63:8]} : d; t = n[1] ? {t[15:0], t[63:16]} : t; rotr = n[2] ? {t[31:0], t[63:32]} : t; end endfunction
  function [7:0] rots(input [7:0] d, input [2:0] n); reg [7:0] t; begin
    t = n[0] ? {d[6:0], d[7]} : d; t = n[1] ? {t[5:0], t[7:6]} : t; rots = n[2] ? {t[3:0], t[7:4]} : t; end endfunction
  function [7:0] nextrow(input [2:0] o); nextrow = ~(8'hff << o); endfunction
  function [7:0] even_of(input [11:0] a); even_of = a[11:4] + a[3]; endfunction
  wire [63:0] p3 = rotl(r_d, r_a[2:0]), p4 = rotl(d4, a4[2:0]);
  wire [7:0] l3 = rots(r_s, r_a[2:0]), l4 = rots(s4, a4[2:0]);
  // lanes of each access in even and odd rows
  wire [7:0] n0 = nextrow(a0[2:0]), n1 = nextrow(a1[2:0]), n2 = nextrow(a2[2:0]), n3 = nextrow(r_a[2:0]), n4 = nextrow(a4[2:0]);
  wire [7:0] le0 = a0[3] ? n0 : ~n0, le1 = a1[3] ? n1 : ~n1, le2 = a2[3] ? n2 : ~n2;
  wire [7:0] le3 = l3 & (r_a[3] ? n3 : ~n3), le4 = l4 & (a4[3] ? n4 : ~n4);
  wire [7:0] lo3 = l3 & ~(r_a[3] ? n3 : ~n3), lo4 = l4 & ~(a4[3] ? n4 : ~n4);
  wire [4:0] te = {|le4, |le3, |le2, |le1, |le0}, to = {|lo4, |lo3, ~&le2, ~&le1, ~&le0};
  wire [4:0] r = {req[4], r_v, req[2:0]};
  reg [4:0] g, pe, po; reg [1:0] ue, uo;
  task one(input integer q, input c); begin
    if (c & r[q] & ~g[q] & ~(te[q] & ue[1]) & ~(to[q] & uo[1])) begin
      g[q] = 1; pe[q] = ue[0]; po[q] = uo[0];
      if (te[q]) ue = ue[0] ? 2'b11 : 2'b01;
      if (to[q]) uo = uo[0] ? 2'b11 : 2'b01;
    end end endtask
  always @* begin
    g = 0; pe = 0; po = 0; ue = 0; uo = 0;
    one(3, r_late); one(4, urgent_load); one(2, urgent_store);
    one(1, behind); one(0, 1); one(1, 1); one(3, 1); one(4, 1); one(2, 1);
  end
  assign granted = g; assign r_take = g[3];
  wire [4:0] ge = g & te, go = g & to;
  wire [4:0] e0s = ge & ~pe, e1s = ge & pe, o0s = go & ~po, o1s = go & po;
  wire [7:0] ve0 = even_of(a0), ve1 = even_of(a1), ve2 = even_of(a2), ve3 = even_of(r_a), ve4 = even_of(a4);
  always @* begin
    adr_e0 = {8{e0s[0]}} & ve0 | {8{e0s[1]}} & ve1 | {8{e0s[2]}} & ve2 | {8{e0s[3]}} & ve3 | {8{e0s[4]}} & ve4;
    adr_e1 = {8{e1s[0]}} & ve0 | {8{e1s[1]}} & ve1 | {8{e1s[2]}} & ve2 | {8{e1s[3]}} & ve3 | {8{e1s[4]}} & ve4;
    adr_o0 = {8{o0s[0]}} & a0[11:4] | {8{o0s[1]}} & a1[11:4] | {8{o0s[2]}} & a2[11:4] | {8{o0s[3]}} & r_a[11:4] | {8{o0s[4]}} & a4[11:4];
    adr_o1 = {8{o1s[0]}} & a0[11:4] | {8{o1s[1]}} & a1[11:4] | {8{o1s[2]}} & a2[11:4] | {8{o1s[3]}} & r_a[11:4] | {8{o1s[4]}} & a4[11:4];
    en_e0 = {8{e0s[0]}} & le0 | {8{e0s[1]}} & le1 | {8{e0s[2]}} & le2 | {8{e0s[3]}} & le3 | {8{e0s[4]}} & le4;
    en_e1 = {8{e1s[0]}} & le0 | {8{e1s[1]}} & le1 | {8{e1s[2]}} & le2 | {8{e1s[3]}} & le3 | {8{e1s[4]}} & le4;
    en_o0 = {8{o0s[0]}} & ~le0 | {8{o0s[1]}} & ~le1 | {8{o0s[2]}} & ~le2 | {8{o0s[3]}} & lo3 | {8{o0s[4]}} & lo4;
    en_o1 = {8{o1s[0]}} & ~le0 | {8{o1s[1]}} & ~le1 | {8{o1s[2]}} & ~le2 | {8{o1s[3]}} & lo3 | {8{o1s[4]}} & lo4;
    we_e0 = |e0s[4:3]; we_e1 = |e1s[4:3]; we_o0 = |o0s[4:3]; we_o1 = |o1s[4:3];
    w_e0 = e0s[4] ? p4 : p3; w_e1 = e1s[4] ? p4 : p3; w_o0 = o0s[4] ? p4 : p3; w_o1 = o1s[4] ? p4 : p3;
  end
  // read data
  reg [2:0] pe_r, po_r; reg [7:0] lr0, lr1, lr2; reg [2:0] off0, off1;
  always @(posedge clk) begin
    if (g[0]) begin pe_r[0] <= pe[0]; po_r[0] <= po[0]; lr0 <= le0; off0 <= a0[2:0]; end
    if (g[1]) begin pe_r[1] <= pe[1]; po_r[1] <= po[1]; lr1 <= le1; off1 <= a1[2:0]; end
    if (g[2]) begin pe_r[2] <= pe[2]; po_r[2] <= po[2]; lr2 <= le2; end
  end
  function [63:0] pick(input p, input q, input [7:0] l); integer i; reg [63:0] e, o; begin
    e = p ? q_even[127:64] : q_even[63:0]; o = q ? q_odd[127:64] : q_odd[63:0];
    for (i = 0; i < 8; i = i + 1) pick[8*i +: 8] = l[i] ? e[8*i +: 8] : o[8*i +: 8]; end endfunction
  wire [63:0] x0 = rotr(pick(pe_r[0], po_r[0], lr0), off0), x1 = rotr(pick(pe_r[1], po_r[1], lr1), off1);
  assign store = pick(pe_r[2], po_r[2], lr2);
"""
if QUEUE:
    V += """
  reg [63:0] q0; reg h0;
  always @(posedge clk) begin h0 <= keep & ~rst; if (keep & ~h0) q0 <= x0; end
  assign first = h0 ? q0 : x0;
"""
else:
    V += "  assign first = x0;\n"
if RING:
    V += """
  reg [63:0] k0, k1, k2, k3; reg fresh; reg [1:0] at;
  always @(posedge clk) begin fresh <= g[1] & ~rst; at <= word;
    if (fresh & at == 0) k0 <= x1; if (fresh & at == 1) k1 <= x1; if (fresh & at == 2) k2 <= x1; if (fresh & at == 3) k3 <= x1; end
  assign second = fresh & ~replay ? x1 : at[1] ? (at[0] ? k3 : k2) : (at[0] ? k1 : k0);
"""
elif QUEUE:
    V += """
  reg [63:0] q1; reg h1;
  always @(posedge clk) begin h1 <= replay & ~rst; if (replay & ~h1) q1 <= x1; end
  assign second = h1 ? q1 : x1;
"""
else:
    V += "  assign second = x1;\n"
V += "endmodule\n"
for name in ("generic", "nangate45"):
    t = find_target(name)
    for recipe in range(len(t.recipes)) if name == "generic" else (0, len(t.recipes) - 1):
        c = run(
            Run(
                top="sp",
                sources={"sp": V},
                commands=t.recipes[recipe],
                files=t.files,
                liberty=t.liberty,
                netlist="json" if t.library else "",
            ),
            what="sp",
        )
        print(sys.argv[1:4], name, recipe, t.count(c, frozenset()))
from synth.physical.mapping import unit_netlist
from synth.timing.sta import longest_path

t = find_target("nangate45")
for recipe in range(len(t.recipes)):
    c = run(
        Run(
            top="sp",
            sources={"sp": V},
            commands=t.recipes[recipe],
            files=t.files,
            liberty=t.liberty,
            netlist="json",
        ),
        what="sp",
    )
    p = longest_path(unit_netlist("sp", c), t.library)
    print(recipe, round(t.count(c, frozenset())["logic_ge"]), round(p.fmax_mhz))
