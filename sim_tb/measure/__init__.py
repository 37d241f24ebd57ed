"""Measurements in simulation: cycles of kernels, bandwidths, network traffic."""
