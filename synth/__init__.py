"""Synthesis, area reports and trimming."""
