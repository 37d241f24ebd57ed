"""The timing model: cycle-accurate behaviour in C++, certified against the Verilog."""
