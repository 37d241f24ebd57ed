"""Declares, lists, runs and records experiments, and renders their figures into pages."""
