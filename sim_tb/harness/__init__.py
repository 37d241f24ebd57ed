"""Cocotb tests that serve runs within a simulator, and the structures shared with C++."""
