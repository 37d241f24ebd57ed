"""Measurements of columns that are read again: plans, line buffers, load histories."""
