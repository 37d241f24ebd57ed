"""Topology, routing, router and star: how requesters and vaults reach each other."""

from vip_rooms import check_rooms

check_rooms()
