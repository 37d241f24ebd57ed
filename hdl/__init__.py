"""Shared hardware vocabulary: configuration, signatures, memories, emission."""

from vip_rooms import check_rooms

check_rooms()
