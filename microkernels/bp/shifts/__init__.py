"""Messages by shifts, where the smoothness costs need no matrix (:mod:`.transform`)."""
