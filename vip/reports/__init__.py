"""The page on an engine: what it shows, its figures, its HTML."""
