"""Power from recorded activity on a mapped netlist."""
