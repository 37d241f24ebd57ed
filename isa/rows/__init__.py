"""Rows of the instruction table, one module per functional unit."""
