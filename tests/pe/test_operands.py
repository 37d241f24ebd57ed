"""Operand fetch between a decoder and a register file, against what the ISA says of registers."""

import pytest
from amaranth.hdl import Module

from isa.table import BY_KEY, encode
from pe.config import PeConfig
from pe.frontend.decode import Decode
from pe.frontend.operands import Operands
from pe.frontend.register_file import RegisterFile
from tests.executed_lines import simulator_of

M64 = (1 << 64) - 1


FULL = PeConfig()


class Bench:
    """The stage, with the registers that it reads; ``r`` holds 100 * its number."""

    def __init__(self, config=FULL):
        self.dut = Operands(config)
        self.registers = RegisterFile(config)
        decode = Decode(config)
        self.module = m = Module()
        m.submodules.dut = self.dut
        m.submodules.registers = self.registers
        m.submodules.decode = decode
        m.d.comb += [
            decode.word.eq(self.dut.word),
            self.dut.decoded.eq(decode.out),
            self.dut.valid.eq(self.registers.valid),
        ]
        for port in range(3):
            m.d.comb += [
                self.registers.read[port].eq(self.dut.read[port]),
                self.registers.index[port].eq(self.dut.index[port]),
                self.dut.value[port].eq(self.registers.value[port]),
            ]

    async def write(self, ctx, number, value):
        ctx.set(self.registers.target, number)
        ctx.set(self.registers.data, value)
        ctx.set(self.registers.write, 1)
        await ctx.tick()
        ctx.set(self.registers.write, 0)

    async def fetch(self, ctx, key, *operands, pc=7):
        """Put an instruction into the stage."""
        ctx.set(self.dut.run, 1)
        ctx.set(self.dut.next_valid, 1)
        ctx.set(self.dut.next_pc, pc)
        ctx.set(self.dut.next_word, encode(BY_KEY[key], operands))
        assert ctx.get(self.dut.ready)
        await ctx.tick()
        ctx.set(self.dut.next_valid, 0)

    def run(self, work):
        async def bench(ctx):
            for number in range(1, 8):
                await self.write(ctx, number, 100 * number)
            await work(ctx)

        with simulator_of(self.module) as simulator:
            simulator.add_clock(1e-9)
            simulator.add_testbench(bench)
            simulator.run()


@pytest.mark.parametrize(
    ("key", "operands", "expected"),
    [
        ("add", (1, 2, 3), (None, 200, 300)),
        ("sub", (1, 2, 3), (None, 200, 300 ^ M64)),
        ("add.imm", (1, 2, -5), (None, 200, -5 & M64)),
        ("mov.imm", (1, 77), (None, 0, 77)),
        ("blt", (4, 5, -3), (400, 400, 500 ^ M64)),
        ("ld.sram[8]", (4, 5, 6), (400, 500, 600)),
    ],
)
def test_operands(key, operands, expected):
    bench = Bench()

    async def work(ctx):
        await bench.fetch(ctx, key, *operands)
        offer = bench.dut.offer
        assert ctx.get(offer.valid)
        payload = offer.payload
        for name, value in zip(("a", "first", "second"), expected, strict=True):
            # Register A of an instruction that only writes it is not read.
            assert value is None or ctx.get(payload[name]) == value
        if key == "blt":
            assert ctx.get(payload.target) == 7 - 3

    bench.run(work)


@pytest.mark.parametrize(
    ("distance", "target"), [(-7, 0), (-8, 127 - 128), (120, 127), (121, 0 - 128), (8191, 6 - 128)]
)
def test_small_engines_know_that_a_branch_leads_out(distance, target):
    bench = Bench(PeConfig(instruction_words=128))

    async def work(ctx):
        await bench.fetch(ctx, "blt", 4, 5, distance)
        assert ctx.get(bench.dut.offer.payload.target) == target

    bench.run(work)


def test_the_result_ahead_is_passed_on_to_every_operand():
    bench = Bench()

    async def work(ctx):
        dut = bench.dut
        ctx.set(dut.ahead, 2)
        ctx.set(dut.result, 999)
        await bench.fetch(ctx, "add", 1, 2, 2)
        for writes, value in ((0, 200), (1, 999)):
            ctx.set(dut.writes, writes)
            assert ctx.get(dut.offer.payload.first) == value
            assert ctx.get(dut.offer.payload.second) == value
        # An immediate and the zero of a move are no registers, whatever their fields say.
        ctx.set(dut.offer.ready, 1)
        await bench.fetch(ctx, "add.imm", 1, 3, 2 << 8)
        assert ctx.get(dut.offer.payload.first) == 300
        assert ctx.get(dut.offer.payload.second) == 2 << 8

    bench.run(work)


def test_waits_for_a_load_and_takes_its_value():
    bench = Bench()

    async def work(ctx):
        dut, registers = bench.dut, bench.registers
        # The load is still at issue, then on its way, then writes.
        ctx.set(dut.ahead, 3)
        ctx.set(dut.loads, 1)
        await bench.fetch(ctx, "add", 1, 2, 3, pc=9)
        assert (ctx.get(dut.offer.valid), ctx.get(dut.waits), ctx.get(dut.pc)) == (0, 1, 9)
        ctx.set(registers.invalidate, 1)
        ctx.set(registers.pending, 3)
        await ctx.tick()
        ctx.set(registers.invalidate, 0)
        ctx.set(dut.loads, 0)
        for _ in range(3):
            assert (ctx.get(dut.offer.valid), ctx.get(dut.waits)) == (0, 1)
            await ctx.tick()
        await bench.write(ctx, 3, 12345)
        assert (ctx.get(dut.offer.valid), ctx.get(dut.waits)) == (0, 1)
        await ctx.tick()
        assert (ctx.get(dut.offer.valid), ctx.get(dut.waits)) == (1, 0)
        assert ctx.get(dut.offer.payload.second) == 12345

    bench.run(work)


def test_a_redirection_discards_what_is_here_and_what_comes():
    bench = Bench()

    async def work(ctx):
        dut = bench.dut
        await bench.fetch(ctx, "add", 1, 2, 3)
        ctx.set(dut.redirect, 1)
        ctx.set(dut.next_valid, 1)
        await ctx.tick()
        ctx.set(dut.redirect, 0)
        ctx.set(dut.next_valid, 0)
        assert not ctx.get(dut.offer.valid)

    bench.run(work)
