"""A debugger of programs on the instruction set simulator."""
