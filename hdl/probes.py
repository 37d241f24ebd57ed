"""Names under which proofs see signals of a component, declared beside the signals."""

from typing import Any

__all__ = ["Probes"]


class Probes:
    """Signals, ports and registers of a component that proofs read; the name of each as an
    attribute.

    ``Probes("held", legal="out.legal", check=Check.PROBES)`` has ``held`` and ``legal``, and in
    ``check`` those of the component that is instantiated by this name.

    Parameters:
        names: of signals. renamed: name here -> name of the signal in the netlist, or the probes of
            a component within.
    """

    def __init__(self, *names: str, **renamed: "str | Probes") -> None:
        self._path = ""
        self._signals: dict[str, str | Probes] = {**{name: name for name in names}, **renamed}

    def __getattr__(self, name: str) -> Any:
        signal = self.__dict__.get("_signals", {}).get(name)
        if signal is None:
            raise AttributeError(f"there is no probe {name!r}")
        return f"{self._path}{signal}" if isinstance(signal, str) else signal._at(self._path + name)

    def _at(self, path: str) -> "Probes":
        """The same signals of the instance at ``path``."""
        placed = Probes(**self._signals)
        placed._path = f"{path}."
        return placed
