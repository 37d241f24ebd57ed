"""Runs of programs and kernels on Verilog, compared with golden models."""
