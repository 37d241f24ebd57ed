"""The page on an engine: its contents, its figures, its HTML."""
