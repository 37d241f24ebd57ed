"""The arbiter of packets on a channel."""

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Assert, Assume, Module, Signal

from hdl.yosys import YosysError, run_yosys
from noc.router.arbiter import PacketArbiter


def waiting_for_a_bound(count, victim, most):
    """A module that asserts that at most ``most`` packets pass a victim that waits."""
    m = Module()
    m.submodules.arbiter = arbiter = PacketArbiter(count=count)
    requests, served = Signal(count), Signal(count)
    waits = Signal()
    passed = Signal(range(most + 2))
    m.d.comb += [
        arbiter.requests.eq(requests),
        arbiter.served.eq(served),
        # Only eligible requesters are served, one at a time; the victim requests until then.
        Assume((served & ~(requests & arbiter.eligible)) == 0),
        Assume((served & (served - 1)) == 0),
        Assume(~waits | requests[victim]),
        Assert(passed <= most),
    ]
    m.d.sync += waits.eq(requests[victim] & ~served[victim])
    with m.If(~waits | served[victim]):
        m.d.sync += passed.eq(0)
    with m.Elif(served.any() & (passed <= most)):
        m.d.sync += passed.eq(passed + 1)
    return m, [requests, served]


def prove(path, count, victim, most):
    module, ports = waiting_for_a_bound(count, victim, most)
    path.write_text(rtlil.convert(module, "top", ports=ports, emit_src=False))
    commands = [
        f"read_rtlil {path.name}",
        "hierarchy -top top",
        "proc",
        "flatten",
        "async2sync",
        "chformal -lower",
        "opt_clean",
        "sat -tempinduct -prove-asserts -set-assumes -set rst 0 -maxsteps 40 -verify top",
    ]
    run_yosys(commands, purpose="proof", folder=path.parent)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_proof_that_no_requester_is_passed_over(tmp_path, count):
    for victim in (0, count - 1):
        prove(tmp_path / "arbiter.il", count, victim, 2 * (count - 1))


def test_the_proof_fails_where_it_must(tmp_path):
    with pytest.raises(YosysError, match="proof did fail"):
        prove(tmp_path / "arbiter.il", 3, 1, 1)


def test_a_request_makes_some_requester_eligible(simulate, rng):
    dut = PacketArbiter(count=4)

    async def testbench(ctx):
        winners = set()
        for _ in range(300):
            requests = rng.getrandbits(4)
            ctx.set(dut.requests, requests)
            eligible = ctx.get(dut.eligible) & requests
            assert bool(eligible) == bool(requests)
            ready = [n for n in range(4) if eligible >> n & 1]
            chosen = rng.choice(ready) if ready and rng.random() < 0.6 else None
            ctx.set(dut.served, 0 if chosen is None else 1 << chosen)
            winners.add(chosen)
            await ctx.tick()
        assert winners == {0, 1, 2, 3, None}

    simulate(dut, testbench)


def test_the_next_requester_in_order_is_preferred(simulate):
    dut = PacketArbiter(count=3)

    async def testbench(ctx):
        assert ctx.get(dut.eligible) == 0b111
        ctx.set(dut.requests, 0b110)
        await ctx.tick()
        assert ctx.get(dut.eligible) == 0b010
        ctx.set(dut.served, 0b010)
        await ctx.tick()
        ctx.set(dut.served, 0)
        assert ctx.get(dut.eligible) == 0b100
        ctx.set(dut.requests, 0b011)
        assert ctx.get(dut.eligible) == 0b111

    simulate(dut, testbench)
