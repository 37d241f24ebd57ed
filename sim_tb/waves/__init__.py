"""Analysis of a cosimulation's waveforms: instructions in the pipeline, and events over time."""
