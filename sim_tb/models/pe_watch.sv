// Bound into an engine's Verilog; records how much of its tables is in use at once. `most` is the
// smallest size with which nothing would have waited for a free entry since the reset. An engine in
// which `occupied` and `free` are forced behaves as one with smaller tables.

module vip_arc_watch #(
    parameter int ENTRIES = 1
) (
    input logic clk,
    input logic rst,
    input logic [ENTRIES-1:0] occupied,
    input logic allocate
);
  int unsigned most[1];
  int unsigned earlier;

  // An entry is allocated one cycle after a free one is found.
  always_ff @(posedge clk) begin
    earlier <= $countones(occupied);
    if (rst) most[0] <= 0;
    else if (allocate && earlier >= most[0]) most[0] <= earlier + 1;
  end
endmodule

module vip_queue_watch #(
    parameter int BITS = 1
) (
    input logic clk,
    input logic rst,
    input logic [BITS-1:0] outstanding,
    input logic tag_taken
);
  int unsigned most[1];
  int unsigned earlier;

  // A tag that a response frees can be taken two cycles later.
  always_ff @(posedge clk) begin
    earlier <= 32'(outstanding) + 32'(tag_taken);
    if (rst) most[0] <= 0;
    else if (tag_taken && earlier >= most[0]) most[0] <= earlier + 1;
  end
endmodule

bind arc vip_arc_watch #(.ENTRIES($bits(occupied))) watch (.clk, .rst, .occupied, .allocate);
bind load_store vip_queue_watch #(.BITS($bits(outstanding))) watch (
    .clk, .rst, .outstanding, .tag_taken
);
