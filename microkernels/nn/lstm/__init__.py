"""LSTM cells: shape, plan, layout and kernel."""
