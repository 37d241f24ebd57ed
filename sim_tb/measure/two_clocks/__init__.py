"""Measurements of vaults whose memory has a clock of its own."""
