"""Markov random fields of a user on golden models, simulators, the timing model and Verilog."""
