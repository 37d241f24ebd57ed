"""What the kernels' functions raise for input that they can't use."""

__all__ = ["KernelError"]


class KernelError(ValueError):
    """Input that a kernel can't use; one line: what, where, and what is allowed."""
