// DRAM of a vault in four states (memory/controller/dram_port.py): every word is X until it is
// written, and the data bus is X while no word is read. `wrong` counts X where a command, its place
// or a strobe has to be known, and commands to a bank that is not open, or not closed, as they ask.
`timescale 1ps/1ps
module dram #(
  parameter BANK_BITS = 2, parameter ROW_BITS = 10, parameter COLUMN_BITS = 3,
  parameter TCL = 18, parameter TCWL = 18
) (
  input clk, input rst, input valid, input [2:0] kind, input [BANK_BITS-1:0] bank,
  input [ROW_BITS-1:0] row, input [COLUMN_BITS-1:0] column, input [63:0] write_data,
  input [7:0] write_strobe, output reg [63:0] read_data, output reg [31:0] wrong
);
  localparam BANKS = 1 << BANK_BITS;
  localparam WORD_BITS = ROW_BITS + BANK_BITS + COLUMN_BITS + 2;
  localparam SPAN = 128;
  reg [63:0] words [0:(1 << WORD_BITS)-1];
  reg [BANKS-1:0] is_open;
  reg [ROW_BITS-1:0] open_row [0:BANKS-1];
  // What moves in the cycles to come, by their numbers modulo SPAN.
  reg [SPAN-1:0] reads, writes;
  reg [WORD_BITS-1:0] read_place [0:SPAN-1];
  reg [WORD_BITS-1:0] write_place [0:SPAN-1];
  reg [6:0] now, at;
  reg [63:0] merged;
  integer n;
  initial wrong = 0;
  always @(posedge clk) begin
    read_data <= 64'bx;
    if (rst) begin
      is_open = 0;
      reads = 0;
      writes = 0;
      now = 0;
    end else begin
      if (writes[now]) begin
        if (^write_strobe === 1'bx) wrong = wrong + 1;
        merged = words[write_place[now]];
        for (n = 0; n < 8; n = n + 1)
          if (write_strobe[n]) merged[8*n +: 8] = write_data[8*n +: 8];
        words[write_place[now]] = merged;
        writes[now] = 0;
      end
      if (valid === 1'bx) wrong = wrong + 1;
      if (valid === 1'b1) begin
        if (^{kind, bank} === 1'bx) wrong = wrong + 1;
        case (kind)
          0: begin
            if (is_open[bank] !== 0 || ^row === 1'bx) wrong = wrong + 1;
            is_open[bank] = 1;
            open_row[bank] = row;
          end
          1, 2: begin
            if (is_open[bank] !== 1 || ^column === 1'bx) wrong = wrong + 1;
            for (n = 0; n < 4; n = n + 1) begin
              at = now + n + (kind == 1 ? TCL : TCWL);
              if (kind == 1) begin
                reads[at] = 1;
                read_place[at] = {open_row[bank], bank, column, n[1:0]};
              end else begin
                writes[at] = 1;
                write_place[at] = {open_row[bank], bank, column, n[1:0]};
              end
            end
          end
          3: is_open[bank] = 0;
          4: if (is_open[bank] !== 0) wrong = wrong + 1;
          default: wrong = wrong + 1;
        endcase
      end
      now = now + 1;
      if (reads[now]) read_data <= words[read_place[now]];
      reads[now] = 0;
    end
  end
endmodule
