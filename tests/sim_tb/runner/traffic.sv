// Stands in for a processing engine: its program is a list of memory requests, which it makes one
// after the other as fast as the memory takes them, up to 2**TAG_BITS in flight.
//
// Word: bit 0 write, bit 1 misbehave (use tag 0, free or not), 3:2 words less one,
// 23:4 address in 64-bit words, 31:24 strobe. A write's data is its word's address.
//
// Counters: 0 cycles, 1 cycles from the acceptance of the first request to its first response beat,
// 2 sum of the data read, 3 words read, 4 responses out of request order, 5 errors.
module pe #(
    parameter int ADDRESS_BITS = 20,
    parameter int TAG_BITS = 4,
    parameter int PC_BITS = 10
) (
    input clk,
    input rst,
    output memory__request__valid,
    input memory__request__ready,
    output [ADDRESS_BITS+TAG_BITS+75:0] memory__request__payload,
    input memory__response__valid,
    output memory__response__ready,
    input [TAG_BITS+65:0] memory__response__payload,
    input control__load__valid,
    output control__load__ready,
    input [PC_BITS+31:0] control__load__payload,
    input control__launch__valid,
    output control__launch__ready,
    input [PC_BITS+64:0] control__launch__payload,
    input control__stop,
    output [19:0] control__status,
    input [3:0] control__counter_index,
    output logic [43:0] control__counter_value,
    input [15:0] identity__pe_index,
    input [15:0] identity__vault,
    input [15:0] identity__slot,
    input [15:0] identity__pe_count
);
  logic [31:0] program_words[2**PC_BITS];
  logic running = 0, halted = 0, answered = 0, first = 0;
  logic [PC_BITS:0] pc = 0, length = 0;
  logic [1:0] beat = 0;
  logic [2**TAG_BITS-1:0] busy = 0;
  logic [TAG_BITS-1:0] tag = 0, expected = 0;
  logic [TAG_BITS:0] in_flight = 0;
  logic [43:0] cycles, latency, sum, words_read, disorder, errors;

  wire [31:0] word = program_words[pc[PC_BITS-1:0]];
  wire write = word[0];
  wire [1:0] words = word[3:2];
  wire last = !write || beat == words;
  wire [ADDRESS_BITS-1:0] address = {word[ADDRESS_BITS:4], 3'd0} + {beat, 3'd0};
  wire [TAG_BITS-1:0] used_tag = word[1] ? '0 : tag;
  wire [7:0] strobe = write ? word[31:24] : 8'hff;

  wire room = !busy[used_tag] || word[1];
  assign memory__request__valid = running && pc != length && (beat != 0 || room);
  assign memory__request__payload = {
    last, strobe, 64'(address), write ? words - beat : words, write, used_tag, address
  };
  assign memory__response__ready = 1'b1;

  wire [TAG_BITS-1:0] answer_tag = memory__response__payload[TAG_BITS-1:0];
  wire [63:0] answer_data = memory__response__payload[TAG_BITS+:64];
  wire answer_last = memory__response__payload[TAG_BITS+64];
  wire answer_error = memory__response__payload[TAG_BITS+65];
  wire sent = memory__request__valid && memory__request__ready && last;
  wire done = memory__response__valid && answer_last;
  logic [2**TAG_BITS-1:0] writes;

  assign control__load__ready = !running;
  assign control__launch__ready = !running;
  assign control__status = {
    15'd0, 3'd0, running ? 2'd1 : halted ? 2'd2 : 2'd0
  };

  always @(posedge clk) begin
    if (control__load__valid && !running)
      program_words[control__load__payload[PC_BITS-1:0]] <= control__load__payload[PC_BITS+:32];
    if (control__launch__valid && !running) begin
      {running, halted, first, answered} <= 4'b1000;
      {pc, beat, tag, expected, in_flight, busy} <= '0;
      length <= control__launch__payload[PC_BITS:0];
      {cycles, latency, sum, words_read, disorder, errors} <= '0;
    end
    if (running) begin
      cycles <= cycles + 1;
      if (memory__request__valid && memory__request__ready) begin
        beat <= last ? 0 : beat + 1'b1;
        if (last) begin
          pc <= pc + 1;
          tag <= tag + 1'b1;
          writes[used_tag] <= write;
          busy[used_tag] <= 1;
          first <= 1;
        end
      end
      if (first && !answered) latency <= latency + 1;
      if (memory__response__valid) begin
        answered <= 1;
        if (!writes[answer_tag]) begin
          sum <= sum + 44'(answer_data);
          words_read <= words_read + 1;
        end
      end
      if (done) begin
        expected <= expected + 1'b1;
        busy[answer_tag] <= 0;
        if (answer_tag != expected) disorder <= disorder + 1;
        if (answer_error) errors <= errors + 1;
      end
      in_flight <= in_flight + (TAG_BITS + 1)'(sent) - (TAG_BITS + 1)'(done);
      if ((pc == length && in_flight == 0) || (control__stop && in_flight == 0)) begin
        running <= 0;
        halted <= 1;
      end
    end
    case (control__counter_index)
      4'd0: control__counter_value <= cycles;
      4'd1: control__counter_value <= latency;
      4'd2: control__counter_value <= sum;
      4'd3: control__counter_value <= words_read;
      4'd4: control__counter_value <= disorder;
      4'd5: control__counter_value <= errors;
      4'd6: control__counter_value <= 44'(identity__pe_index);
      default: control__counter_value <= 44'd0;
    endcase
    if (rst) {running, halted} <= 2'b00;
  end
endmodule
