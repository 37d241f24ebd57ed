"""The clock domains of designs, and the names of their clocks and resets in Verilog."""

from typing import Any

from amaranth.hdl import ClockDomain

#: Domain of engines, crossbar, network and host; in a design with one clock, of everything.
ENGINE_DOMAIN = "sync"
#: Domain of a vault's back end in a design with two clocks.
MEMORY_DOMAIN = "mem"

#: Domain -> clock and reset in Verilog. A reset is active when 1 and synchronous to its clock.
CLOCK_PORTS = {ENGINE_DOMAIN: ("clk", "rst"), MEMORY_DOMAIN: ("clk_mem", "rst_mem")}


def named_domain(name: str) -> Any:
    """A new ``ClockDomain`` ``name`` whose clock and reset are named by :data:`CLOCK_PORTS`, or by
    Amaranth if not listed."""
    domain: Any = ClockDomain(name)
    if name in CLOCK_PORTS and domain.rst is not None:
        domain.clk.name, domain.rst.name = CLOCK_PORTS[name]
    return domain
