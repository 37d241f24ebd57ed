"""One module per group of commands; each command only parses, calls a room, and shows."""
