"""Real inputs: photographs and stereo pairs."""
