"""The timing model: what the Verilog does in which cycle, in C++, certified against the Verilog."""
