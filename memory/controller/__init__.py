"""The DRAM controller of a vault: queue, bank machines, scheduler, refresh, data paths."""
