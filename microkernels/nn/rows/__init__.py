"""Softmax and normalisations of rows: golden model, layout, kernel."""
