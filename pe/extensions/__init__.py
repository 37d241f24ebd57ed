"""Extensions of the load-store unit, which declare all that they add to an engine."""
