"""Random programs, and their comparison on Verilog and simulator."""
