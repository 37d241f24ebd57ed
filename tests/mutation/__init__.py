"""Mutants of the hardware, and which of them the tests kill (docs/running.md)."""
