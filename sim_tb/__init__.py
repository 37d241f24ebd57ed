"""Cosimulation: runner, test benches, memory models, drivers and monitors."""

from vip_rooms import check_rooms

check_rooms()
