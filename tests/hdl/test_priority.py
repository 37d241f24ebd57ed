"""The first of several flags, for all flags of some widths."""

import pytest
from amaranth.hdl import Module, Signal

from hdl.priority import lowest_one, set_flags


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


def test_flags_change_and_of_one_bit_the_last_change_counts(simulate, rng) -> None:
    flags = Signal(5, init=0b10011)
    clears, sets = Signal(), Signal()
    cleared, marked = Signal(3), Signal(3)
    m = Module()
    set_flags(m, flags, ((clears, cleared, False), (sets, marked, True)))

    async def testbench(ctx) -> None:
        expected, both = 0b10011, 0
        for _ in range(200):
            down, up = rng.randrange(2), rng.randrange(2)
            low, high = rng.randrange(5), rng.randrange(5)
            for signal, value in zip(
                (clears, sets, cleared, marked), (down, up, low, high), strict=True
            ):
                ctx.set(signal, value)
            await ctx.tick()
            expected = expected & ~(down << low) | up << high
            both += down and up and low == high
            assert ctx.get(flags) == expected
        assert both

    simulate(m, testbench)
