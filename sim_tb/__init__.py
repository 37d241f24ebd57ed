"""Cosimulation: runner, benches, memory model, drivers and monitors."""
