"""Engines trimmed to programs: runs, cuts, checks, chips of them, and the suite of applications."""
