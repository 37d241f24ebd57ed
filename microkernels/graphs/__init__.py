"""Belief propagation on graphs that are no grid, with vectors of differing length."""
