"""Cell libraries and static timing."""
