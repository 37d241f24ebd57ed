"""Layout of mapped netlists: floorplan, placement, and the wires that they need."""
