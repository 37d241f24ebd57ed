"""What every room's configuration needs: the error that refuses one, and how memories are built."""

from typing import Literal

from isa.support.errors import VipError

__all__ = ["ConfigurationError", "SramKind"]

#: How memories are built: see :mod:`hdl.sram`.
SramKind = Literal["behavioural", "fpga", "macro"]


class ConfigurationError(VipError):
    """A configuration that can't be built; the message names the value and what is allowed."""
