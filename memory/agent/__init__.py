"""An agent that learns online which class of commands to issue to a vault's DRAM first."""
