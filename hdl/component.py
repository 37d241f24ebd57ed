"""Base class of all hardware units, and the names by which proofs access their internals."""

from typing import TYPE_CHECKING, Any

from amaranth.lib import wiring

# Amaranth's class takes no type arguments at run time.
if TYPE_CHECKING:
    _Base = wiring.Component[wiring.Signature]
else:
    _Base = wiring.Component


class Component(_Base):
    """A component whose members, which only exist at run time, are accepted by type checkers.

    Constructor parameters are attributes of the same names: emission recognises equal components
    by them (:mod:`hdl.emission`). Registers, wires and parts that proofs rely on are named by the
    class attribute ``probes`` (:class:`Probes`).
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Probes:
    """Names of a component's internal registers, wires and parts.

    Each is an attribute, whose value is its name in the hardware: ``Dispatch.probes.occupied`` is
    ``"occupied"``, and ``Dispatch.probes.within("dispatch").occupied`` is ``"dispatch.occupied"``.
    ``tests/pe/test_probes.py`` looks for them in the Verilog.

    Parameters:
        names: of the component's module.
        path: of the instance, with a dot behind each name.
    """

    def __init__(self, *names: str, path: str = "") -> None:
        self.names = names
        self._path = path

    def __getattr__(self, name: str) -> str:
        if name.startswith("_") or name not in self.names:
            raise AttributeError(f"no probe {name!r}; there are: {', '.join(self.names)}")
        return self._path + name

    def within(self, instance: str) -> "Probes":
        """These names as seen from outside, where the component is ``instance``."""
        return Probes(*self.names, path=f"{instance}.{self._path}")
