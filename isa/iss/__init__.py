"""The instruction set simulator."""
