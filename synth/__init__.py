"""Synthesis: area of the hardware by unit, and trimming of hardware to programs."""

from vip_rooms import check_rooms

check_rooms()
