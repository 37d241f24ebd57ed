// A vault's DRAM in a simulation (dram.h); signals as memory.controller.dram_port.DramPort.
module vip_dram_device #(
    parameter int BANK_BITS = 4,
    parameter int ROW_BITS = 16,
    parameter int COLUMN_BITS = 3,
    parameter int DEVICE = 0  // index of the device, one per vault
) (
    input logic clk,
    input logic rst,
    input logic valid,
    input logic [2:0] kind,
    input logic [BANK_BITS-1:0] bank,
    input logic [ROW_BITS-1:0] row,
    input logic [COLUMN_BITS-1:0] column,
    input logic [63:0] write_data,
    input logic [7:0] write_strobe,
    output logic [63:0] read_data,
    output logic failed  // the controller broke a rule
);
  import "DPI-C" function int vip_dram_cycle(
      input int device,
      input bit reset,
      input bit valid,
      input int unsigned kind,
      input int unsigned bank,
      input int unsigned row,
      input int unsigned column,
      input longint unsigned write_data,
      input int unsigned write_strobe,
      output longint unsigned read_data
  );

  longint unsigned next_data;
  int next_failed;

  // verilator lint_off BLKSEQ
  always_ff @(posedge clk) begin
    next_failed = vip_dram_cycle(
        DEVICE, rst, valid, 32'(kind), 32'(bank), 32'(row), 32'(column), write_data,
        32'(write_strobe), next_data
    );
    read_data <= next_data;
    failed <= next_failed != 0;
  end
  // verilator lint_on BLKSEQ
endmodule
