"""Synchronisation of engines in software: barriers, the ring over vaults, interleavings."""
