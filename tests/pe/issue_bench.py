"""A bench for the issue stage after a decoder; it models operands, dispatch and the units."""

from amaranth.hdl import Module, Signal

from isa.table import BY_KEY, encode
from pe.config import PeConfig
from pe.frontend.decode import Decode, issued
from pe.frontend.issue import Issue
from pe.frontend.operands import with_operands
from tests.executed_lines import simulator_of

WIDE = PeConfig()
PC = 20


def _operands(config):
    """Shapes of what comes with a decoded instruction."""
    return {name: field.shape for name, field in with_operands(config) if name != "decoded"}


class Bench:
    """The stage with a decoder in front of it."""

    def __init__(self, config=WIDE):
        self.dut = Issue(config)
        self.module = m = Module()
        m.submodules.dut = self.dut
        m.submodules.decode = self.decode = Decode(config)
        payload = self.dut.next.payload
        m.d.comb += [
            getattr(payload.decoded, name).eq(getattr(self.decode.out, name))
            for name, _ in issued(config)
        ]
        self.given = {name: Signal(shape) for name, shape in _operands(config).items()}
        m.d.comb += [getattr(payload, name).eq(given) for name, given in self.given.items()]

    def run(self, work):
        async def bench(ctx):
            self.ctx = ctx
            ctx.set(self.dut.run, 1)
            ctx.set(self.dut.dispatch_empty, 1)
            ctx.set(self.dut.load_store_idle, 1)
            ctx.set(self.dut.offer.ready, 1)
            ctx.set(self.dut.reset, 1)
            await ctx.tick()
            ctx.set(self.dut.reset, 0)
            # Matrix sizes settle.
            await ctx.tick().repeat(12)
            await work(self)

        with simulator_of(self.module) as simulator:
            simulator.add_clock(1e-9)
            simulator.add_testbench(bench)
            simulator.run()

    def get(self, name):
        return self.ctx.get(getattr(self.dut, name))

    def set(self, **values):
        for name, value in values.items():
            self.ctx.set(getattr(self.dut, name), value)

    def show(self, what, *operands, a=0, first=0, second=0, pc=PC, outside=0, target=0):
        """Offer an instruction, or a word, to the stage."""
        word = what if isinstance(what, int) else encode(BY_KEY[what], operands)
        ctx = self.ctx
        ctx.set(self.decode.word, word)
        values = {"a": a, "first": first, "second": second}
        values |= {"pc": pc, "outside": outside, "target": target}
        for name, value in values.items():
            ctx.set(self.given[name], value)
        ctx.set(self.dut.next.valid, 1)

    async def issue(self, what, *operands, **values):
        """Put an instruction into the stage; it is at issue now, and no other one after it."""
        self.show(what, *operands, **values)
        assert self.ctx.get(self.dut.next.ready)
        await self.tick()

    async def tick(self):
        await self.ctx.tick()
        self.ctx.set(self.dut.next.valid, 0)

    @property
    def offered(self):
        return self.ctx.get(self.dut.offer.valid)

    @property
    def free(self):
        """Whether the next instruction may come."""
        return self.ctx.get(self.dut.next.ready)
