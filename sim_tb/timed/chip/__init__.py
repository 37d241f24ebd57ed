"""The timing model of a chip: vaults, the nodes and routers of the torus, and the control bus."""
