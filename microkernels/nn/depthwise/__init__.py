"""Depthwise convolutions, with channels in the lanes."""
