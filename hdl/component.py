"""Base class of every hardware unit."""

from typing import TYPE_CHECKING, Any

from amaranth.lib import wiring

__all__ = ["Component"]


# At run time Amaranth's class takes no type arguments.
if TYPE_CHECKING:
    _Base = wiring.Component[wiring.Signature]
else:
    _Base = wiring.Component


class Component(_Base):
    """A component with members that type checkers accept, although they exist only at run time.

    Constructor parameters are attributes of the same names: emission recognises equal components
    by them (:mod:`hdl.emission`).
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
