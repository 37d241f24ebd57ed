// A requester at a memory port (vault_traffic.cpp); signals as hdl.ports.MemoryPort.
module vip_traffic #(
    parameter int ADDRESS_BITS = 28,
    parameter int TAG_BITS = 9,
    parameter int REQUESTER = 0  // index of the requester
) (
    input logic clk,
    input logic rst,
    output logic request_valid,
    input logic request_ready,
    output logic [ADDRESS_BITS+TAG_BITS+75:0] request_payload,
    input logic response_valid,
    output logic response_ready,
    input logic [TAG_BITS+65:0] response_payload
);
  import "DPI-C" function void vip_traffic_cycle(
      input int requester,
      input bit reset,
      input int unsigned tags,
      input bit request_ready,
      input bit response_valid,
      input int unsigned response_tag,
      input longint unsigned response_data,
      input bit response_last,
      input bit response_error,
      output bit request_valid,
      output longint unsigned address,
      output int unsigned tag,
      output bit write,
      output int unsigned words,
      output longint unsigned data,
      output int unsigned strobe,
      output bit last,
      output bit response_ready
  );

  bit next_valid, next_write, next_last, next_ready;
  int unsigned next_tag, next_words, next_strobe;
  longint unsigned next_address, next_data;

  // verilator lint_off BLKSEQ
  always_ff @(posedge clk) begin
    vip_traffic_cycle(
        REQUESTER, rst, 32'd1 << TAG_BITS, request_ready, response_valid,
        32'(response_payload[TAG_BITS-1:0]), response_payload[TAG_BITS+:64],
        response_payload[TAG_BITS+64], response_payload[TAG_BITS+65], next_valid, next_address,
        next_tag, next_write, next_words, next_data, next_strobe, next_last, next_ready
    );
    request_valid <= next_valid;
    request_payload <= {
      next_last,
      8'(next_strobe),
      next_data,
      2'(next_words),
      next_write,
      TAG_BITS'(next_tag),
      ADDRESS_BITS'(next_address)
    };
    response_ready <= next_ready;
  end
  // verilator lint_on BLKSEQ
endmodule
