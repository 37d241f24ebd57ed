"""The checks of streams find an offer that changes or goes away before it is taken."""

import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.axi import Axi4Lite
from hdl.component import Component
from hdl.emission import shared_instance


class Counter(Component):
    """Offers numbers on a stream and on a channel of AXI; ``wrong``: the next one too early, or
    nothing in every other cycle."""

    def __init__(self, wrong=""):
        self.wrong = wrong
        super().__init__(
            {"numbers": Out(stream.Signature(8)).array(2), "bus": Out(Axi4Lite(address_bits=8))}
        )

    def elaborate(self, platform):
        m = Module()
        number, odd = Signal(8), Signal()
        m.d.sync += odd.eq(~odd)
        with m.If(Cat(port.ready for port in self.numbers).all() | (self.wrong == "changes")):
            m.d.sync += number.eq(number + 1)
        valid = odd if self.wrong == "withdrawn" else 1
        for port in self.numbers:
            m.d.comb += [port.valid.eq(valid), port.payload.eq(number)]
        m.d.comb += self.bus.awvalid.eq(1)
        if self.wrong == "address":
            m.d.comb += self.bus.awaddr.eq(odd)
        return m


class Around(Component):
    """A counter within another component."""

    def __init__(self, wrong):
        self.wrong = wrong
        super().__init__({"go": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.counter = shared_instance(Counter(self.wrong), platform)
        return m


async def some_cycles(ctx):
    for _ in range(5):
        await ctx.tick()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("changes", "Counter: numbers__0 changed before it was taken"),
        ("withdrawn", "Counter: numbers__0 changed before it was taken"),
        ("address", "Counter: bus__aw changed before it was taken"),
    ],
)
@pytest.mark.parametrize("kind", [Counter, Around])
def test_what_changes_is_found_at_any_depth(simulate, kind, wrong, message):
    with pytest.raises(AssertionError, match=message):
        simulate(kind(wrong), some_cycles)


def test_what_stays_passes_and_what_is_taken_may_change(simulate):
    dut = Counter()

    async def takes(ctx):
        for port in dut.numbers:
            ctx.set(port.ready, 1)
        await some_cycles(ctx)
        assert ctx.get(dut.numbers[1].payload) == 5

    simulate(dut, some_cycles)
    simulate(Counter(), some_cycles)
    simulate(dut, takes)
