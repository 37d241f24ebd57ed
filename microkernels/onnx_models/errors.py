"""Exceptions of functions on ONNX models."""

from support.errors import VipError, clipped, printable

__all__ = ["MixedImagesError", "ModelError", "one_line"]

#: Most characters of another library's message.
_MOST_SHOWN = 200


class ModelError(VipError):
    """An invalid model, or invalid data for one; one line says what, where, and what is allowed."""


class MixedImagesError(ModelError):
    """The first axis of a node's output does not hold the images of its inputs' first axes, one
    by one, so that this axis is not a batch."""


def one_line(error: BaseException) -> str:
    """The message of another library's exception, on one line of limited length."""
    return clipped(printable(" ".join(str(error).split())), _MOST_SHOWN)
