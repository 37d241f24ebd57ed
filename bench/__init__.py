"""Benchmarks with recorded results: cycles, simulation speed, generation time, area."""
