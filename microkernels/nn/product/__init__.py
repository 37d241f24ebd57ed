"""Products of two maps: golden model, layout, kernel."""
