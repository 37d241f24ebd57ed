"""The controller of a vault's DRAM: queue, bank machines, scheduler, refresh, data paths."""
