"""Options that several commands have, by their subject."""
