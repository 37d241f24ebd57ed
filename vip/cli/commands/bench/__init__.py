"""``vip bench``: a module a command, and their group."""
