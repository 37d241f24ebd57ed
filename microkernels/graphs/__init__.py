"""Belief propagation on graphs of any shape, with vectors of differing length."""
