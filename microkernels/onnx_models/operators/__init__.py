"""Functions that map one node of a graph onto layers, by type of operator."""
