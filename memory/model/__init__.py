"""The C++ model of a vault's DRAM devices."""
