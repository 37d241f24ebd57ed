"""The timing model of a single processing engine with a memory."""
