// A memory on an AXI4 bus in a simulation (axi_memory.cpp); signals as hdl.axi.Axi4.
module vip_axi_memory #(
    parameter int ADDRESS_BITS = 28,
    parameter int DATA_BITS = 64,
    parameter int ID_BITS = 4,
    parameter int MEMORY = 0  // number of the memory, one per vault
) (
    input logic clk,
    input logic rst,
    input logic [ID_BITS-1:0] awid,
    input logic [ADDRESS_BITS-1:0] awaddr,
    input logic [7:0] awlen,
    input logic awvalid,
    output logic awready,
    input logic [DATA_BITS-1:0] wdata,
    input logic [DATA_BITS/8-1:0] wstrb,
    input logic wvalid,
    output logic wready,
    output logic [ID_BITS-1:0] bid,
    output logic [1:0] bresp,
    output logic bvalid,
    input logic [ID_BITS-1:0] arid,
    input logic [ADDRESS_BITS-1:0] araddr,
    input logic [7:0] arlen,
    input logic arvalid,
    output logic arready,
    output logic [ID_BITS-1:0] rid,
    output logic [DATA_BITS-1:0] rdata,
    output logic [1:0] rresp,
    output logic rlast,
    output logic rvalid
);
  import "DPI-C" function void vip_axi_cycle(
      input int memory,
      input bit reset,
      input int unsigned lanes,
      input bit arvalid,
      input int unsigned arid,
      input longint unsigned araddr,
      input int unsigned arlen,
      input bit awvalid,
      input int unsigned awid,
      input longint unsigned awaddr,
      input int unsigned awlen,
      input bit wvalid,
      input bit [255:0] wdata,
      input int unsigned wstrb,
      inout bit wready,
      output bit rvalid,
      output int unsigned rid,
      output bit [255:0] rdata,
      output int unsigned rresp,
      output bit rlast,
      output bit bvalid,
      output int unsigned bid,
      output int unsigned bresp
  );

  assign awready = 1'b1;
  assign arready = 1'b1;

  bit next_wready = 1'b0, next_rvalid, next_rlast, next_bvalid;
  int unsigned next_rid, next_rresp, next_bid, next_bresp;
  bit [255:0] next_rdata;

  // verilator lint_off BLKSEQ
  always_ff @(posedge clk) begin
    vip_axi_cycle(
        MEMORY, rst, DATA_BITS / 64, arvalid, 32'(arid), 64'(araddr), 32'(arlen), awvalid, 32'(awid),
        64'(awaddr), 32'(awlen), wvalid, 256'(wdata), 32'(wstrb), next_wready, next_rvalid, next_rid,
        next_rdata, next_rresp, next_rlast, next_bvalid, next_bid, next_bresp
    );
    wready <= next_wready;
    rvalid <= next_rvalid;
    rid <= ID_BITS'(next_rid);
    rdata <= DATA_BITS'(next_rdata);
    rresp <= 2'(next_rresp);
    rlast <= next_rlast;
    bvalid <= next_bvalid;
    bid <= ID_BITS'(next_bid);
    bresp <= 2'(next_bresp);
  end
  // verilator lint_on BLKSEQ
endmodule
