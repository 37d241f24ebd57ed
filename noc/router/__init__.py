"""The router of a vault: buffers, route computation, arbiters, output channels."""
