"""Applications of the suite that trimming is measured on, each with its golden model."""
