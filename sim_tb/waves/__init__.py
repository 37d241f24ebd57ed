"""What the waveforms of a cosimulation show: instructions in the pipeline, and events over time."""
