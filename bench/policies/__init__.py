"""Benchmarks of policies of a vault's scheduler."""
