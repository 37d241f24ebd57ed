"""Exploration of designs: configurations x kernels to cycles, area, clock and power."""
