"""Simulators: built with Verilator, kept, and run as processes."""
