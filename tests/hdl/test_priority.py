"""The first of several flags, for all flags of some widths."""

import pytest
from amaranth.hdl import Module, Signal

from hdl.priority import lowest_one


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 11])
def test_the_lowest_one_is_found(width: int, simulate) -> None:
    flags = Signal(width)
    found = Signal(max(1, (width - 1).bit_length()))
    m = Module()
    m.d.comb += found.eq(lowest_one(flags))

    async def testbench(ctx) -> None:
        for value in range(1, 1 << width):
            ctx.set(flags, value)
            assert value & -value == 1 << ctx.get(found)

    simulate(m, testbench, combinational=True)
