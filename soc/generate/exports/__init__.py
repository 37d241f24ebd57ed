"""Files that other tools read beside the Verilog: one module per tool."""
