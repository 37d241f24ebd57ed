"""Boards: the serial host port of a chip, and the boards that a bit file can be made for."""
