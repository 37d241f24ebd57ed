// The vaults' ends of a network (network_traffic.cpp); signals as noc.ports.LinkPort.
module vip_network_traffic #(
    parameter int VAULTS = 4
) (
    input logic clk,
    output logic rst,
    output logic idle,
    output logic [VAULTS-1:0] in_valid,
    output logic [VAULTS-1:0] in_channel,
    output logic [VAULTS-1:0][65:0] in_flit,
    input logic [VAULTS-1:0][1:0] in_credit,
    input logic [VAULTS-1:0] out_valid,
    input logic [VAULTS-1:0] out_channel,
    input logic [VAULTS-1:0][65:0] out_flit,
    output logic [VAULTS-1:0][1:0] out_credit
);
  import "DPI-C" function int vip_network_host(output bit reset);
  import "DPI-C" function void vip_network_cycle(
      input int vault,
      input int unsigned in_credit,
      input bit out_valid,
      input bit out_channel,
      input longint unsigned out_data,
      input bit out_last,
      input bit out_error,
      output bit in_valid,
      output bit in_channel,
      output longint unsigned in_data,
      output bit in_last,
      output bit in_error,
      output int unsigned out_credit
  );

  int next_idle;
  bit next_reset, next_valid, next_channel, next_last, next_error;
  longint unsigned next_data;
  int unsigned next_credit;

  initial begin
    rst = 1'b1;
    idle = 1'b1;
  end

  // verilator lint_off BLKSEQ
  always_ff @(posedge clk) begin
    next_idle = vip_network_host(next_reset);
    rst <= next_reset;
    idle <= next_idle != 0;
    for (int vault = 0; vault < VAULTS; ++vault) begin
      vip_network_cycle(
          vault, 32'(in_credit[vault]), out_valid[vault], out_channel[vault],
          out_flit[vault][63:0], out_flit[vault][64], out_flit[vault][65], next_valid,
          next_channel, next_data, next_last, next_error, next_credit
      );
      in_valid[vault] <= next_valid;
      in_channel[vault] <= next_channel;
      in_flit[vault] <= {next_error, next_last, next_data};
      out_credit[vault] <= 2'(next_credit);
    end
  end
  // verilator lint_on BLKSEQ
endmodule
