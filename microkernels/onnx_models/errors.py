"""Exceptions for ONNX models."""

from support.errors import VipError, clipped, printable

#: Maximum length of another library's message.
_MOST_SHOWN = 200


class ModelError(VipError):
    """An invalid model, or invalid data for one; one line says what, where, and what is allowed."""


class MixedImagesError(ModelError):
    """The images along the first axis of a node's output are not those of its inputs, one by one,
    so this axis is not a batch."""


def one_line(error: BaseException) -> str:
    """The message of another library's exception, on one line of limited length."""
    return clipped(printable(" ".join(str(error).split())), _MOST_SHOWN)
