"""Vault tile, chip, presets and Verilog generation."""

from vip_rooms import check_rooms

check_rooms()
