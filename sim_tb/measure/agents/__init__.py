"""Search for agents of a vault's scheduler, and what their features are worth."""
