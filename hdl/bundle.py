"""Bundles: signals from one component to another, as individual members of both."""

from typing import Any

from amaranth.hdl import Module, ShapeLike
from amaranth.lib.wiring import In, Member, Out

from .component import Component


class Bundle:
    """Signals in one direction; one declaration serves both components and the enclosing module.

    Unlike a :class:`amaranth.lib.wiring.Signature`, a bundle adds no level of names: its signals
    are separate ports, to whose names each component may add a prefix.

    Parameters:
        members: shape of each signal, in the order of the ports.
    """

    def __init__(self, **members: ShapeLike) -> None:
        self._members = members

    def outputs(self, prefix: str = "") -> dict[str, Member]:
        """Members of the component that the signals come from."""
        return {prefix + name: Out(shape) for name, shape in self._members.items()}

    def inputs(self, prefix: str = "") -> dict[str, Member]:
        """Members of the component that the signals go to."""
        return {prefix + name: In(shape) for name, shape in self._members.items()}

    def join(
        self,
        m: Module,
        source: Component,
        sink: Component,
        *,
        source_prefix: str = "",
        sink_prefix: str = "",
    ) -> None:
        """Connect the signals of ``source`` to those of ``sink``.

        Parameters:
            source_prefix, sink_prefix: prefix of the members of ``source`` and of ``sink``.
        """
        for name in self._members:
            target: Any = getattr(sink, sink_prefix + name)
            m.d.comb += target.eq(getattr(source, source_prefix + name))
