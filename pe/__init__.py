"""The processing engine (PE): one file a unit."""

from vip_rooms import check_rooms

check_rooms()
