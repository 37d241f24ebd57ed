"""Options of several commands, by subject."""
