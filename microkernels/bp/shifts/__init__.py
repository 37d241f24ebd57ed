"""Messages by shifts, for smoothness costs that need no matrix (:mod:`.transform`)."""
