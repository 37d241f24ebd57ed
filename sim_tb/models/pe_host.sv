// Host of one engine in a simulation (pe_host.cpp); ports as hdl.ports.ControlPort and IdentityPort.
module vip_pe_host #(
    parameter int PC_BITS = 10,
    parameter int CAUSE_BITS = 3,
    parameter int STATUS_PC_BITS = 15,
    parameter int COUNTER_BITS = 44,
    parameter int ENGINE = 0  // index of the host, one per engine
) (
    input logic clk,
    output logic reset,  // the host wants the engine reset
    output logic idle,  // nothing to do
    input logic failed,  // a rule was broken outside the engine
    output logic load_valid,
    input logic load_ready,
    output logic [PC_BITS+31:0] load_payload,
    output logic launch_valid,
    input logic launch_ready,
    output logic [PC_BITS+64:0] launch_payload,
    output logic stop,
    input logic [CAUSE_BITS+STATUS_PC_BITS+2:0] status,
    output logic [3:0] counter_index,
    input logic [COUNTER_BITS-1:0] counter_value,
    output logic [15:0] pe_index,
    output logic [15:0] vault,
    output logic [15:0] slot,
    output logic [15:0] pe_count
);
  import "DPI-C" function int vip_host_cycle(
      input int engine,
      input bit load_ready,
      input bit launch_ready,
      input int unsigned state,
      input int unsigned cause,
      input int pc,
      input bit memory_error,
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

  wire [1:0] state = status[1:0];
  wire [CAUSE_BITS-1:0] cause = status[2+:CAUSE_BITS];
  wire signed [STATUS_PC_BITS-1:0] pc = status[2+CAUSE_BITS+:STATUS_PC_BITS];
  wire memory_error = status[2+CAUSE_BITS+STATUS_PC_BITS];

  bit next_reset, next_load_valid, next_launch_valid, next_stop;
  int unsigned next_load_address, next_load_word, next_launch_words, next_counter_index;
  int unsigned next_pe_index, next_vault, next_slot, next_pe_count;
  longint unsigned next_parameters;
  int next_idle;

  initial begin
    reset = 1'b1;
    idle = 1'b1;
    load_valid = 1'b0;
    launch_valid = 1'b0;
    stop = 1'b0;
  end

  // verilator lint_off BLKSEQ
  always_ff @(posedge clk) begin
    next_idle = vip_host_cycle(
        ENGINE, load_ready, launch_ready, 32'(state), 32'(cause), 32'(pc),
        memory_error, 64'(counter_value),
        failed, next_reset, next_load_valid, next_load_address, next_load_word,
        next_launch_valid, next_launch_words, next_parameters, next_stop, next_counter_index,
        next_pe_index, next_vault, next_slot, next_pe_count
    );
    idle <= next_idle != 0;
    reset <= next_reset;
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
