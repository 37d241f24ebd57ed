"""The exception that kernel functions raise for input they can't use."""

from support.checks import Checks
from support.errors import VipError


class KernelError(VipError):
    """Input that a kernel can't use. The message is one line: input, place, allowed values."""


#: Checks that raise :class:`KernelError`.
CHECK = Checks(KernelError)
