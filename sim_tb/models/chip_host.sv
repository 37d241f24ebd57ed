// Host of a chip in a simulation (chip_host.cpp): the manager of the ports of soc.chip.chip.Chip.
module vip_chip_host #(
    parameter int CONTROL_ADDRESS_BITS = 20,
    parameter int DATA_ADDRESS_BITS = 48,
    parameter int ID_BITS = 4
) (
    input logic clk,
    input logic failed,  // a rule was broken outside the chip
    input logic host_interrupt,
    output logic reset,  // the host wants the chip reset
    output logic idle,  // nothing to do
    output logic [CONTROL_ADDRESS_BITS-1:0] control_awaddr,
    output logic [2:0] control_awprot,
    output logic control_awvalid,
    input logic control_awready,
    output logic [31:0] control_wdata,
    output logic [3:0] control_wstrb,
    output logic control_wvalid,
    input logic control_wready,
    input logic [1:0] control_bresp,
    input logic control_bvalid,
    output logic control_bready,
    output logic [CONTROL_ADDRESS_BITS-1:0] control_araddr,
    output logic [2:0] control_arprot,
    output logic control_arvalid,
    input logic control_arready,
    input logic [31:0] control_rdata,
    input logic [1:0] control_rresp,
    input logic control_rvalid,
    output logic control_rready,
    output logic [ID_BITS-1:0] data_awid,
    output logic [DATA_ADDRESS_BITS-1:0] data_awaddr,
    output logic [7:0] data_awlen,
    output logic [2:0] data_awsize,
    output logic [1:0] data_awburst,
    output logic [3:0] data_awcache,
    output logic [2:0] data_awprot,
    output logic data_awvalid,
    input logic data_awready,
    output logic [63:0] data_wdata,
    output logic [7:0] data_wstrb,
    output logic data_wlast,
    output logic data_wvalid,
    input logic data_wready,
    input logic [ID_BITS-1:0] data_bid,
    input logic [1:0] data_bresp,
    input logic data_bvalid,
    output logic data_bready,
    output logic [ID_BITS-1:0] data_arid,
    output logic [DATA_ADDRESS_BITS-1:0] data_araddr,
    output logic [7:0] data_arlen,
    output logic [2:0] data_arsize,
    output logic [1:0] data_arburst,
    output logic [3:0] data_arcache,
    output logic [2:0] data_arprot,
    output logic data_arvalid,
    input logic data_arready,
    input logic [ID_BITS-1:0] data_rid,
    input logic [63:0] data_rdata,
    input logic [1:0] data_rresp,
    input logic data_rlast,
    input logic data_rvalid,
    output logic data_rready
);
  import "DPI-C" function int vip_chip_cycle(
      input bit failed,
      input bit raised,
      input bit control_awready,
      input bit control_wready,
      input bit control_bvalid,
      input int unsigned control_bresp,
      input bit control_arready,
      input bit control_rvalid,
      input int unsigned control_rresp,
      input int unsigned control_rdata,
      input bit data_awready,
      input bit data_wready,
      input bit data_bvalid,
      input int unsigned data_bresp,
      input bit data_arready,
      input bit data_rvalid,
      input int unsigned data_rresp,
      input longint unsigned data_rdata,
      output bit reset,
      output bit control_awvalid,
      output bit control_wvalid,
      output bit control_arvalid,
      output int unsigned control_address,
      output int unsigned control_wdata,
      output bit data_awvalid,
      output longint unsigned data_awaddr,
      output int unsigned data_awlen,
      output bit data_wvalid,
      output longint unsigned data_wdata,
      output int unsigned data_wstrb,
      output bit data_wlast,
      output bit data_arvalid,
      output longint unsigned data_araddr,
      output int unsigned data_arlen
  );

  // Whole words, in the order of addresses, one identifier: so answers come in order.
  assign control_awprot = '0;
  assign control_arprot = '0;
  assign control_wstrb = '1;
  assign control_bready = 1'b1;
  assign control_rready = 1'b1;
  assign data_awid = '0;
  assign data_arid = '0;
  assign data_awsize = 3'd3;
  assign data_arsize = 3'd3;
  assign data_awburst = 2'd1;
  assign data_arburst = 2'd1;
  assign data_awcache = 4'd3;
  assign data_arcache = 4'd3;
  assign data_awprot = '0;
  assign data_arprot = '0;
  assign data_bready = 1'b1;
  assign data_rready = 1'b1;

  bit next_reset, next_control_awvalid, next_control_wvalid, next_control_arvalid;
  bit next_data_awvalid, next_data_wvalid, next_data_wlast, next_data_arvalid;
  int unsigned next_address, next_control_wdata, next_awlen, next_wstrb, next_arlen;
  longint unsigned next_awaddr, next_wdata, next_araddr;
  int next_idle;

  initial begin
    reset = 1'b1;
    idle = 1'b1;
    control_awvalid = 1'b0;
    control_wvalid = 1'b0;
    control_arvalid = 1'b0;
    data_awvalid = 1'b0;
    data_wvalid = 1'b0;
    data_arvalid = 1'b0;
  end

  // verilator lint_off BLKSEQ
  always_ff @(posedge clk) begin
    next_idle = vip_chip_cycle(
        failed, host_interrupt, control_awready, control_wready, control_bvalid,
        32'(control_bresp), control_arready, control_rvalid, 32'(control_rresp), control_rdata, data_awready,
        data_wready, data_bvalid, 32'(data_bresp), data_arready, data_rvalid, 32'(data_rresp),
        data_rdata, next_reset, next_control_awvalid, next_control_wvalid, next_control_arvalid,
        next_address, next_control_wdata, next_data_awvalid, next_awaddr, next_awlen,
        next_data_wvalid, next_wdata, next_wstrb, next_data_wlast, next_data_arvalid, next_araddr,
        next_arlen
    );
    idle <= next_idle != 0;
    reset <= next_reset;
    control_awvalid <= next_control_awvalid;
    control_awaddr <= CONTROL_ADDRESS_BITS'(next_address);
    control_wvalid <= next_control_wvalid;
    control_wdata <= next_control_wdata;
    control_arvalid <= next_control_arvalid;
    control_araddr <= CONTROL_ADDRESS_BITS'(next_address);
    data_awvalid <= next_data_awvalid;
    data_awaddr <= DATA_ADDRESS_BITS'(next_awaddr);
    data_awlen <= 8'(next_awlen);
    data_wvalid <= next_data_wvalid;
    data_wdata <= next_wdata;
    data_wstrb <= 8'(next_wstrb);
    data_wlast <= next_data_wlast;
    data_arvalid <= next_data_arvalid;
    data_araddr <= DATA_ADDRESS_BITS'(next_araddr);
    data_arlen <= 8'(next_arlen);
  end
  // verilator lint_on BLKSEQ
endmodule
