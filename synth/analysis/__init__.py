"""Analysis of programs for trimming: needs, values, profiles, bounds."""
