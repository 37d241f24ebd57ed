"""What trimming knows of a program: needs, values, profiles, bounds."""
