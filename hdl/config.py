"""Shared by all configurations: the exception, and the memory implementations."""

from typing import Literal

from support.errors import VipError

#: How memories are built: see :mod:`hdl.sram`.
SramKind = Literal["behavioural", "fpga", "macro"]


class ConfigurationError(VipError):
    """A configuration that can't be built; the message names the value and the allowed range."""
