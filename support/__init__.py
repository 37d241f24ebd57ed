"""Utilities that all rooms share: errors, files, processes, pictures."""
