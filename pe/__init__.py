"""The processing engine (PE): one file a unit."""
