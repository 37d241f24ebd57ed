"""A vault's memory: controller, back ends, and the model of the DRAM devices."""

from vip_rooms import check_rooms

check_rooms()
