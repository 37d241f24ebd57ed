"""Random programs, compared between Verilog and simulator."""
