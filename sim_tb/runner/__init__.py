"""Simulators: built with Verilator, cached, and run as processes."""
