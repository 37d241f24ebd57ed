import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from isa.table import BY_KEY, INSTRUCTIONS, find
from pe.config import PeConfig
from pe.frontend.decode import Decode
from pe.frontend.fetch import GATES_DEPTH, Fetch
from pe.frontend.instruction_word import WORD_BITS, whole_word
from pe.interface import EXACT_PC_WORDS

CONFIG = PeConfig(instruction_words=64)


def _load(words):
    async def load(ctx, dut):
        ctx.set(dut.load.valid, 1)
        for address, word in enumerate(words):
            ctx.set(dut.load.payload.address, address)
            ctx.set(dut.load.payload.word, word)
            assert ctx.get(dut.load.ready) == 1
            await ctx.tick()
        ctx.set(dut.load.valid, 0)
        ctx.set(dut.words, len(words))
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        ctx.set(dut.run, 1)

    return load


def test_first_word_two_cycles_after_start_then_one_a_cycle(simulate, rng):
    dut = Fetch(CONFIG)
    words = [rng.getrandbits(32) for _ in range(20)]

    async def bench(ctx):
        await _load(words)(ctx, dut)
        ctx.set(dut.ready, 1)
        assert ctx.get(dut.valid) == 0
        await ctx.tick()
        for pc, word in enumerate(words):
            assert (ctx.get(dut.valid), ctx.get(dut.pc), ctx.get(dut.word)) == (1, pc, word)
            assert ctx.get(dut.outside) == 0
            await ctx.tick()
        assert (ctx.get(dut.pc), ctx.get(dut.outside)) == (20, 1)

    simulate(dut, bench)


@pytest.mark.parametrize("depth", [64, EXACT_PC_WORDS])
def test_random_waits_and_redirects(simulate, rng, depth):
    dut = Fetch(PeConfig(instruction_words=depth))
    words = [rng.getrandbits(32) for _ in range(64)]
    exact = depth == EXACT_PC_WORDS
    modulo = 1 << 15 if exact else 64

    async def bench(ctx):
        await _load(words)(ctx, dut)
        await ctx.tick()
        pc = 0
        for _ in range(1500):
            assert ctx.get(dut.valid) == 1
            assert (ctx.get(dut.pc) - pc) % modulo == 0
            inside = 0 <= pc < len(words)
            assert ctx.get(dut.outside) == (not inside)
            if inside:
                assert ctx.get(dut.word) == words[pc]
            ready = rng.random() < 0.6
            redirect = rng.random() < 0.2 or not -20 < pc < 80
            target = rng.randrange(-5, 70) if rng.random() < 0.3 else rng.randrange(64)
            ctx.set(dut.ready, ready)
            ctx.set(dut.redirect, redirect)
            far = 0 <= target < 64 or exact
            ctx.set(dut.target, target if far else target % 64 - 64)
            if redirect:
                pc = target
            elif ready:
                pc += 1
            await ctx.tick()

    simulate(dut, bench)


def test_program_can_only_be_loaded_while_stopped(simulate):
    dut = Fetch(CONFIG)

    async def bench(ctx):
        await _load([1, 2, 3])(ctx, dut)
        assert ctx.get(dut.load.ready) == 0
        await ctx.tick()
        assert ctx.get(dut.valid) == 1
        ctx.set(dut.run, 0)
        assert ctx.get(dut.load.ready) == 1
        await ctx.tick()
        assert ctx.get(dut.valid) == 0

    simulate(dut, bench)


def test_program_longer_than_the_buffer_does_not_wrap(simulate):
    """A launch may name more words than there are; the first of them is outside."""
    dut = Fetch(CONFIG)

    async def bench(ctx):
        await _load([7] * 64)(ctx, dut)
        ctx.set(dut.words, 100)
        ctx.set(dut.ready, 1)
        await ctx.tick()
        for pc in range(70):
            assert (ctx.get(dut.pc) % 64, ctx.get(dut.outside)) == (pc % 64, pc >= 64)
            await ctx.tick()

    simulate(dut, bench)


@pytest.mark.parametrize("length", [1, 20, GATES_DEPTH + 1])
def test_a_built_in_program_comes_out_decoded(simulate, rng, length):
    """In any order, whatever was loaded, and words that the engine lacks as illegal ones."""
    rows = [row for row in INSTRUCTIONS if row.key in KEYS]
    words = [rng.choice(rows).match | rng.getrandbits(2) << 20 for _ in range(length)]
    words[-1] = rng.choice((0, BY_KEY["jmp"].match, BY_KEY["add"].match | 63 << 20, words[-1]))
    config = PeConfig(instructions=KEYS, instruction_words=128, registers=16, program=tuple(words))
    dut = Rom(config)
    legal = [row.key in KEYS if (row := find(word)) else False for word in words]
    legal = [good and word >> 24 & 3 == 0 for good, word in zip(legal, words, strict=True)]

    async def bench(ctx):
        fetch = dut.fetch
        ctx.set(fetch.load.valid, 1)
        ctx.set(fetch.load.payload.word, 0xFFFF_FFFF)
        assert ctx.get(fetch.load.ready) == 1
        ctx.set(fetch.start, 1)
        await ctx.tick()
        ctx.set(fetch.load.valid, 0)
        ctx.set(fetch.start, 0)
        ctx.set(fetch.run, 1)
        await ctx.tick()
        pc = 0
        for _ in range(4 * length):
            assert ctx.get(fetch.outside) == (pc >= length)
            if pc < length:
                assert ctx.get(dut.decode.out.legal) == legal[pc]
            if pc < length and legal[pc]:
                assert ctx.get(dut.word) == words[pc]
            goes_on = pc < length and rng.random() < 0.7
            target = rng.randrange(length + 1)
            ctx.set(fetch.redirect, not goes_on)
            ctx.set(fetch.target, target)
            ctx.set(fetch.ready, goes_on)
            pc = pc + 1 if goes_on else target
            await ctx.tick()

    simulate(dut, bench)


KEYS = frozenset({"add", "mov", "add.imm", "blt", "halt"})


class Rom(wiring.Component):
    """Fetch with what becomes of its word."""

    def __init__(self, config):
        super().__init__({"word": Out(WORD_BITS)})
        self.config = config
        self.fetch = Fetch(config)
        self.decode = Decode(config)

    def elaborate(self, platform):
        m = Module()
        m.submodules.fetch = self.fetch
        m.submodules.decode = self.decode
        m.d.comb += [
            self.decode.word.eq(self.fetch.word),
            self.word.eq(whole_word(self.config, self.fetch.word)[0]),
        ]
        return m
