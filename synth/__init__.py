"""Synthesis: area of the hardware by unit, and trimming of the hardware to a program."""
