"""Vault tile, chip, presets and Verilog generation."""
