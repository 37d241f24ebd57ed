"""The instruction set of the VIP processing engine: one table, and everything derived from it."""

from vip_rooms import check_rooms

check_rooms()
