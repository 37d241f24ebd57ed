"""How experiments are declared, listed, run, recorded, and rendered into pages."""
