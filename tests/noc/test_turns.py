"""Turns of packets on a channel."""

import pytest

from noc.turns import Turns


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("packet", [1, 3])
def test_who_wants_is_never_passed_over_for_ever(simulate, rng, count, packet):
    """The others conspire: whoever may and is not the victim goes first."""
    dut = Turns(count=count)
    victim = rng.randrange(count)

    async def testbench(ctx):
        waited = longest = served = 0
        busy = 0
        for _ in range(600):
            wants = rng.getrandbits(count) | 1 << victim
            ctx.set(dut.wants, wants)
            may = ctx.get(dut.may) & wants
            assert may, "somebody wants and nobody may"
            begins = 0
            if not busy:
                others = [n for n in range(count) if may >> n & 1 and n != victim]
                chosen = rng.choice(others) if others else victim
                begins = 1 << chosen
                busy = packet
                if chosen == victim:
                    served += 1
                    longest = max(longest, waited)
                    waited = 0
                else:
                    waited += 1
            ctx.set(dut.begins, begins)
            await ctx.tick()
            busy -= 1
        assert longest <= 2 * count
        assert served >= 600 // (packet * (2 * count + 1)) - 1

    simulate(dut, testbench)


def test_all_may_when_none_is_in_turn(simulate):
    dut = Turns(count=3)

    async def testbench(ctx):
        assert ctx.get(dut.may) == 0b111
        ctx.set(dut.wants, 0b110)
        ctx.set(dut.begins, 0b010)
        await ctx.tick()
        ctx.set(dut.begins, 0)
        assert ctx.get(dut.may) == 0b100
        ctx.set(dut.wants, 0b011)
        assert ctx.get(dut.may) == 0b111

    simulate(dut, testbench)
