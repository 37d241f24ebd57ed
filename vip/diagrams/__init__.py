"""Block diagrams: the units of a module and the links between them, as its Verilog has them."""
