"""Mapping, area, placement and devices."""
