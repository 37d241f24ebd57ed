"""Updates with edge weights and with damping."""
