"""Verilog of presets and configuration files."""
