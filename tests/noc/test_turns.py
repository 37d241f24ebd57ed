"""Turns of packets on a channel."""

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Assert, Assume, Module, Signal

from hdl.yosys import YosysError, quote, run_yosys
from noc.router.arbiter import Turns


def waiting_for_a_bound(count, victim, most):
    """A module that asserts that at most ``most`` packets pass a victim that waits."""
    m = Module()
    m.submodules.turns = turns = Turns(count=count)
    wants, begins = Signal(count), Signal(count)
    waits = Signal()
    passed = Signal(range(most + 2))
    m.d.comb += [
        turns.wants.eq(wants),
        turns.begins.eq(begins),
        # Only who wants and may begins, one at a time; the victim wants until it begins.
        Assume((begins & ~(wants & turns.may)) == 0),
        Assume((begins & (begins - 1)) == 0),
        Assume(~waits | wants[victim]),
        Assert(passed <= most),
    ]
    m.d.sync += waits.eq(wants[victim] & ~begins[victim])
    with m.If(~waits | begins[victim]):
        m.d.sync += passed.eq(0)
    with m.Elif(begins.any() & (passed <= most)):
        m.d.sync += passed.eq(passed + 1)
    return m, [wants, begins]


def prove(path, count, victim, most):
    module, ports = waiting_for_a_bound(count, victim, most)
    path.write_text(rtlil.convert(module, "top", ports=ports, emit_src=False))
    commands = [
        f"read_rtlil {quote(path)}",
        "hierarchy -top top",
        "proc",
        "flatten",
        "async2sync",
        "chformal -lower",
        "opt_clean",
        "sat -tempinduct -prove-asserts -set-assumes -set rst 0 -maxsteps 40 -verify top",
    ]
    run_yosys(commands, what="proof")


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_proof_that_who_wants_is_not_passed_over(tmp_path, count):
    for victim in (0, count - 1):
        prove(tmp_path / "turns.il", count, victim, 2 * (count - 1))


def test_the_proof_fails_where_it_must(tmp_path):
    with pytest.raises(YosysError, match="proof did fail"):
        prove(tmp_path / "turns.il", 3, 1, 1)


def test_somebody_may_whenever_somebody_wants(simulate, rng):
    dut = Turns(count=4)

    async def testbench(ctx):
        begun = set()
        for _ in range(300):
            wants = rng.getrandbits(4)
            ctx.set(dut.wants, wants)
            may = ctx.get(dut.may) & wants
            assert bool(may) == bool(wants)
            ready = [n for n in range(4) if may >> n & 1]
            chosen = rng.choice(ready) if ready and rng.random() < 0.6 else None
            ctx.set(dut.begins, 0 if chosen is None else 1 << chosen)
            begun.add(chosen)
            await ctx.tick()
        assert begun == {0, 1, 2, 3, None}

    simulate(dut, testbench)


def test_the_next_in_the_circle_is_in_turn(simulate):
    dut = Turns(count=3)

    async def testbench(ctx):
        assert ctx.get(dut.may) == 0b111
        ctx.set(dut.wants, 0b110)
        await ctx.tick()
        assert ctx.get(dut.may) == 0b010
        ctx.set(dut.begins, 0b010)
        await ctx.tick()
        ctx.set(dut.begins, 0)
        assert ctx.get(dut.may) == 0b100
        ctx.set(dut.wants, 0b011)
        assert ctx.get(dut.may) == 0b111

    simulate(dut, testbench)
