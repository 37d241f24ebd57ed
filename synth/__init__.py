"""Synthesis: area of the hardware by unit, and trimming of the hardware to a program."""

from vip_rooms import check_rooms

check_rooms()
