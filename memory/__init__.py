"""A vault's memory: DRAM controller, back ends, and DRAM device model."""

from vip_rooms import check_rooms

check_rooms()
