"""The chip: tiles in a torus, and the control bus."""
