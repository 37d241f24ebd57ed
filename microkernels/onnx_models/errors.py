"""Exceptions for ONNX models."""

from support.errors import VipError, clipped, printable

#: Maximum length of another library's message.
_MOST_SHOWN = 200
#: Maximum length of a name.
_MOST_NAME = 60


def label(name: str) -> str:
    """The name of a node, a tensor or an operator as messages have it."""
    return clipped(printable(name), _MOST_NAME)


class ModelError(VipError):
    """An invalid model, or invalid data for one; one line says what, where, and what is allowed."""


class RefusedError(ModelError):
    """A node that is not supported.

    Parameters:
        op: its operator. node: its name. why: the reason.
    """

    def __init__(self, op: str, node: str, why: str) -> None:
        super().__init__(op, node, why)
        self.op, self.node, self.why = op, node, why

    def __str__(self) -> str:
        return f"node {label(self.node)} ({label(self.op)}): {self.why}"


class MixedImagesError(RefusedError):
    """The images along the first axis of a node's output are not those of its inputs, one by one,
    so this axis is not a batch."""


def one_line(error: BaseException) -> str:
    """The message of another library's exception, on one line of limited length."""
    return clipped(printable(" ".join(str(error).split())), _MOST_SHOWN)
