"""The instruction set of the VIP processing engine: one table and everything derived from it."""
