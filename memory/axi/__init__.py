"""The AXI4 back end of a vault."""
