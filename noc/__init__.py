"""The network: topology, routing, routers and crossbars between requesters and vaults."""

from vip_rooms import check_rooms

check_rooms()
