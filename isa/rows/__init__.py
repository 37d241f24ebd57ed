"""Rows of the instruction table, one module a functional unit."""
