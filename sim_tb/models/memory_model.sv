// Port of a requester to the simulated memory (memory_model.cpp); signals as hdl.ports.MemoryPort.
module vip_memory_model #(
    parameter int ADDRESS_BITS = 33,
    parameter int TAG_BITS = 6,
    parameter int PORT = 0  // index of the port, one per requester
) (
    input logic clk,
    input logic rst,
    input logic request_valid,
    output logic request_ready,
    input logic [ADDRESS_BITS+TAG_BITS+75:0] request_payload,
    output logic response_valid,
    input logic response_ready,
    output logic [TAG_BITS+65:0] response_payload,
    output logic failed  // the requester broke a rule of the port
);
  import "DPI-C" function int vip_memory_cycle(
      input int port,
      input bit request_valid,
      input bit response_ready,
      input longint unsigned address,
      input int unsigned tag,
      input bit write,
      input int unsigned words,
      input longint unsigned data,
      input int unsigned strobe,
      input bit last,
      output bit request_ready,
      output bit response_valid,
      output int unsigned response_tag,
      output longint unsigned response_data,
      output bit response_last,
      output bit response_error
  );

  typedef struct packed {
    logic last;
    logic [7:0] strobe;
    logic [63:0] data;
    logic [1:0] words;
    logic write;
    logic [TAG_BITS-1:0] tag;
    logic [ADDRESS_BITS-1:0] address;
  } request_t;

  request_t request;
  assign request = request_payload;

  bit next_ready, next_valid, next_last, next_error;
  int unsigned next_tag;
  longint unsigned next_data;
  int next_failed;

  // verilator lint_off BLKSEQ
  always_ff @(posedge clk) begin
    if (rst) begin
      request_ready <= 1'b0;
      response_valid <= 1'b0;
      failed <= 1'b0;
    end else begin
      next_failed = vip_memory_cycle(
          PORT, request_valid, response_ready, 64'(request.address), 32'(request.tag),
          request.write, 32'(request.words), request.data, 32'(request.strobe), request.last,
          next_ready, next_valid, next_tag, next_data, next_last, next_error
      );
      request_ready <= next_ready;
      response_valid <= next_valid;
      response_payload <= {next_error, next_last, next_data, TAG_BITS'(next_tag)};
      failed <= next_failed != 0;
    end
  end
  // verilator lint_on BLKSEQ
endmodule
