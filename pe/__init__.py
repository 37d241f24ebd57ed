"""The processing engine (PE), one file per unit."""

from vip_rooms import check_rooms

check_rooms()
