"""What the kernels' functions raise for input that they can't use."""

from isa.support.checks import Checks
from isa.support.errors import VipError

__all__ = ["CHECK", "KernelError"]


class KernelError(VipError):
    """Input that a kernel can't use; one line: what, where, and what is allowed."""


#: Checks that raise it.
CHECK = Checks(KernelError)
