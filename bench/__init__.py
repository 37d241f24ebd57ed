"""Experiments: cycles, bandwidth, area, clock and power, with their records."""

from vip_rooms import check_rooms

check_rooms()
