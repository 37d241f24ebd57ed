"""Topology, routing, router and crossbar: the connections between requesters and vaults."""

from vip_rooms import check_rooms

check_rooms()
