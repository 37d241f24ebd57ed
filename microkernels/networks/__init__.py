"""Whole networks on the vaults of a chip: layers that chain, their cuts, layouts and launches."""
