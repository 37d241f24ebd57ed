"""Vector unit: control, vertical stage, horizontal stage, writeback."""
