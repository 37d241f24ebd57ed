"""Cosimulation: runner, benches, memory model, drivers and monitors."""

from vip_rooms import check_rooms

check_rooms()
