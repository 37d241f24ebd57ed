"""Benchmarks of a memory with a clock of its own."""
