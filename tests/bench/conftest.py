"""``vip`` in an empty folder."""

from tests.vip.conftest import vip

__all__ = ["vip"]
