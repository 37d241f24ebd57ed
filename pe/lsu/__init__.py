"""Load-store unit: requests to memory and their responses."""
