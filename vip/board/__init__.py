"""Boards: bit files of engines trimmed to applications, simulations at the pins, and runs."""
