"""Area, clock and power of mapped engines."""
