"""Microkernels: assembly programs and their generators, data layouts, golden models."""

from vip_rooms import check_rooms

check_rooms()
