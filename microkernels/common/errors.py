"""The exception of the kernels' functions for input that they can't use."""

from support.checks import Checks
from support.errors import VipError

__all__ = ["CHECK", "KernelError"]


class KernelError(VipError):
    """Input that a kernel can't use; the message is one line: input, place, allowed values."""


#: Checks that raise :class:`KernelError`.
CHECK = Checks(KernelError)
