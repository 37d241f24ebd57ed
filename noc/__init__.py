"""Topology, routing, router and star: how requesters and vaults reach each other."""
