"""Bad inputs of the command line, made at random from a seed, and what must hold for each."""
