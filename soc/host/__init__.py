"""The host's port of a chip: AXI ports, register map, driver."""
