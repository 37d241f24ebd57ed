"""Utilities that all rooms share: errors, files, processes, pictures."""

from vip_rooms import check_rooms

check_rooms()
