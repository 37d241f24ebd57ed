"""Base class of every hardware unit."""

from typing import TYPE_CHECKING, Any

from amaranth.lib import wiring

__all__ = ["Component"]


class Component(wiring.Component):
    """A component whose members, which its signature makes at run time, type checkers accept.

    Constructor parameters are kept as attributes of the same names: emission tells equal components
    by them (:mod:`hdl.emission`).
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
