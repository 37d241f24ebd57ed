"""A chip's host interface: AXI ports, register map, driver."""
