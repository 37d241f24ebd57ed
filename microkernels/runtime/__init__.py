"""Software synchronisation of engines: barriers, the ring of vaults, interleavings."""
