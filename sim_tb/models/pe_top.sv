// One processing engine between a simulated host (pe_host.cpp) and a simulated memory.
module vip_pe_top #(
    parameter int ADDRESS_BITS = 33,
    parameter int TAG_BITS = 6,
    parameter int PC_BITS = 10,
    parameter int CAUSE_BITS = 3,
    parameter int STATUS_PC_BITS = 15,
    parameter int COUNTER_BITS = 44
);
  timeunit 1ps; timeprecision 1ps;

  localparam int HALF_PERIOD = 400;

  logic clk = 1'b0;
  always #HALF_PERIOD clk = ~clk;

  logic rst;
  logic idle  /* verilator public_flat_rd */;

  logic load_valid, load_ready, launch_valid, launch_ready, stop;
  logic [PC_BITS+31:0] load_payload;
  logic [PC_BITS+64:0] launch_payload;
  logic [CAUSE_BITS+STATUS_PC_BITS+2:0] status;
  logic [3:0] counter_index;
  logic [COUNTER_BITS-1:0] counter_value;
  logic [15:0] pe_index, vault, slot, pe_count;

  logic request_valid, request_ready, response_valid, response_ready, failed;
  logic [ADDRESS_BITS+TAG_BITS+75:0] request_payload;
  logic [TAG_BITS+65:0] response_payload;

  vip_memory_model #(
      .ADDRESS_BITS(ADDRESS_BITS),
      .TAG_BITS(TAG_BITS),
      .PORT(0)
  ) memory (
      .clk,
      .rst,
      .request_valid,
      .request_ready,
      .request_payload,
      .response_valid,
      .response_ready,
      .response_payload,
      .failed
  );

  pe pe (
      .clk,
      .rst,
      .memory__request__valid(request_valid),
      .memory__request__ready(request_ready),
      .memory__request__payload(request_payload),
      .memory__response__valid(response_valid),
      .memory__response__ready(response_ready),
      .memory__response__payload(response_payload),
      .control__load__valid(load_valid),
      .control__load__ready(load_ready),
      .control__load__payload(load_payload),
      .control__launch__valid(launch_valid),
      .control__launch__ready(launch_ready),
      .control__launch__payload(launch_payload),
      .control__stop(stop),
      .control__status(status),
      .control__counter_index(counter_index),
      .control__counter_value(counter_value),
      .identity__pe_index(pe_index),
      .identity__vault(vault),
      .identity__slot(slot),
      .identity__pe_count(pe_count)
  );

  vip_pe_host #(
      .PC_BITS(PC_BITS),
      .CAUSE_BITS(CAUSE_BITS),
      .STATUS_PC_BITS(STATUS_PC_BITS),
      .COUNTER_BITS(COUNTER_BITS),
      .ENGINE(0)
  ) host (
      .clk,
      .reset(rst),
      .idle,
      .failed,
      .load_valid,
      .load_ready,
      .load_payload,
      .launch_valid,
      .launch_ready,
      .launch_payload,
      .stop,
      .status,
      .counter_index,
      .counter_value,
      .pe_index,
      .vault,
      .slot,
      .pe_count
  );
endmodule
