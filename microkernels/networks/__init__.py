"""Complete networks on a chip's vaults: chained layers, how vaults share them, layouts,
launches."""
