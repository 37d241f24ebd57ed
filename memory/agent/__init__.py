"""An agent that learns, while it works, which class of commands a vault's DRAM gets first."""
