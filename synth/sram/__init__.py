"""Area, energy and timing of memory macros."""
