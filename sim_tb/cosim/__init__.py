"""Runs of programs and kernels on Verilog, held against golden models."""
