"""Designs under test: top modules around an engine, a tile, a chip, a memory or a network."""
