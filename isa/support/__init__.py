"""What all rooms share beside the instruction set: errors, files, processes, pictures."""
