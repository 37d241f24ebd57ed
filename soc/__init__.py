"""Presets and Verilog generation."""
