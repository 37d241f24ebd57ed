"""Applications of the suite for measuring trimming, each with its golden model."""
