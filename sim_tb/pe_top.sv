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

  import "DPI-C" function int vip_host_cycle(
      input bit load_ready,
      input bit launch_ready,
      input int unsigned state,
      input int unsigned cause,
      input int pc,
      input longint unsigned counter_value,
      input bit failed,
      output bit reset,
      output bit load_valid,
      output int unsigned load_address,
      output int unsigned load_word,
      output bit launch_valid,
      output int unsigned launch_words,
      output longint unsigned launch_parameters,
      output bit stop,
      output int unsigned counter_index,
      output int unsigned pe_index,
      output int unsigned vault,
      output int unsigned slot,
      output int unsigned pe_count
  );

  logic clk = 1'b0;
  always #HALF_PERIOD clk = ~clk;

  logic rst = 1'b1;
  logic idle  /* verilator public_flat_rd */ = 1'b1;

  logic load_valid = 1'b0, load_ready, launch_valid = 1'b0, launch_ready, stop = 1'b0;
  logic [PC_BITS+31:0] load_payload;
  logic [PC_BITS+64:0] launch_payload;
  logic [CAUSE_BITS+STATUS_PC_BITS+1:0] status;
  logic [3:0] counter_index;
  logic [COUNTER_BITS-1:0] counter_value;
  logic [15:0] pe_index, vault, slot, pe_count;

  wire [1:0] state = status[1:0];
  wire [CAUSE_BITS-1:0] cause = status[2+:CAUSE_BITS];
  wire signed [STATUS_PC_BITS-1:0] pc = status[2+CAUSE_BITS+:STATUS_PC_BITS];

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

  bit next_reset, next_load_valid, next_launch_valid, next_stop;
  int unsigned next_load_address, next_load_word, next_launch_words, next_counter_index;
  int unsigned next_pe_index, next_vault, next_slot, next_pe_count;
  longint unsigned next_parameters;
  int next_idle;

  // verilator lint_off BLKSEQ
  always_ff @(posedge clk) begin
    next_idle = vip_host_cycle(
        load_ready, launch_ready, 32'(state), 32'(cause), 32'(pc), 64'(counter_value), failed,
        next_reset, next_load_valid, next_load_address, next_load_word, next_launch_valid,
        next_launch_words, next_parameters, next_stop, next_counter_index, next_pe_index,
        next_vault, next_slot, next_pe_count
    );
    idle <= next_idle != 0;
    rst <= next_reset;
    load_valid <= next_load_valid;
    load_payload <= {next_load_word, PC_BITS'(next_load_address)};
    launch_valid <= next_launch_valid;
    launch_payload <= {next_parameters, (PC_BITS + 1)'(next_launch_words)};
    stop <= next_stop;
    counter_index <= 4'(next_counter_index);
    pe_index <= 16'(next_pe_index);
    vault <= 16'(next_vault);
    slot <= 16'(next_slot);
    pe_count <= 16'(next_pe_count);
  end
  // verilator lint_on BLKSEQ
endmodule
