"""Shared hardware vocabulary: configuration, signatures, memories, emission."""
