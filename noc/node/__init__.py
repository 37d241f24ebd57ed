"""A vault's node of the network: packets to and from its requesters and memory."""
