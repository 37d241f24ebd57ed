"""A vault tile: engines, their memory, and their control."""
