"""The crossing of clock domains: a proof for every phase of the clocks, and simulations."""

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Assert, ClockDomain, Elaboratable, Module, ResetSignal, Signal
from amaranth.sim import Simulator

from hdl.clocks import CLOCK_PORTS, ENGINE_DOMAIN, MEMORY_DOMAIN, named_domain
from hdl.config import ConfigurationError
from hdl.crossing import RESET_CYCLES, StreamCrossing
from hdl.yosys import run_yosys
from synth.formal.solve import run_abc
from tests.steady_streams import with_checks

DEPTH = 4
#: Cycles of the target, or of the source, in which a word, or room for one, has to be seen.
MOST_WAIT = 2
#: Changes of clocks within which a search looks for a failure.
STEPS = 18


class Synchronisers:
    """What Amaranth asks for synchronisers: two registers, and a check that the pointer that they
    take, a register of the other domain, changes one bit at a time, so that a register that
    samples it while it changes has the old or the new value."""

    def __init__(self, flaw):
        self.flaw = flaw

    def get_ff_sync(self, synchroniser):
        m = Module()
        target = synchroniser._o_domain
        source = ENGINE_DOMAIN if target == MEMORY_DOMAIN else MEMORY_DOMAIN
        pointer = synchroniser.i
        before, changed = Signal.like(pointer), Signal.like(pointer)
        m.d[source] += before.eq(pointer)
        m.d.comb += changed.eq(pointer ^ before)
        m.d.comb += Assert((changed & (changed - 1)) == 0)
        stages = [Signal.like(pointer, name=f"stage{n}") for n in range(2)]
        m.d[target] += [stages[0].eq(pointer), stages[1].eq(stages[0])]
        m.d.comb += synchroniser.o.eq(stages[1] ^ (self.flaw == "pointer"))
        return m


class Scoreboard(Elaboratable):
    """A crossing between a source and a target that do what they like.

    One word, whichever the source marks, is 1, all others 0. If the word that the target is offered
    is 1 exactly when as many words were taken before as were given before the marked one, for every
    choice of it, then the words come out as they went in: none is lost, repeated or in another
    place.
    """

    def __init__(self, source, target, *, most=DEPTH, wait=MOST_WAIT):
        self.source, self.target, self.most, self.wait = source, target, most, wait
        self.offers, self.accepts, self.mark = Signal(), Signal(), Signal()

    def elaborate(self, platform):
        m = Module()
        dut = StreamCrossing(shape=1, depth=DEPTH, source=self.source, target=self.target)
        m.submodules.dut = dut
        given, taken, place = (Signal(DEPTH, name=n) for n in ("given", "taken", "place"))
        marked, found = Signal(), Signal()
        # Numbers of words are counted modulo 16, and at most 4 are under way.
        under_way = Signal(DEPTH)
        expected = Signal()
        m.d.comb += [
            under_way.eq(given - taken),
            dut.input.valid.eq(self.offers),
            dut.input.payload.eq(self.mark & ~marked),
            dut.output.ready.eq(self.accepts),
            expected.eq(marked & ~found & (taken == place)),
        ]
        with m.If(dut.input.valid & dut.input.ready):
            m.d[self.source] += given.eq(given + 1)
            with m.If(dut.input.payload):
                m.d[self.source] += [marked.eq(1), place.eq(given)]
        with m.If(dut.output.valid & dut.output.ready):
            m.d[self.target] += taken.eq(taken + 1)
            with m.If(expected):
                m.d[self.target] += found.eq(1)
        # For how many cycles a word has not been seen, and room has not.
        unseen, no_room = Signal(3), Signal(3)
        with m.If(dut.output.valid | (under_way == 0)):
            m.d[self.target] += unseen.eq(0)
        with m.Elif(~unseen.all()):
            m.d[self.target] += unseen.eq(unseen + 1)
        with m.If(dut.input.ready | (under_way == DEPTH)):
            m.d[self.source] += no_room.eq(0)
        with m.Elif(~no_room.all()):
            m.d[self.source] += no_room.eq(no_room + 1)
        m.d.comb += [
            ResetSignal(ENGINE_DOMAIN).eq(0),
            ResetSignal(MEMORY_DOMAIN).eq(0),
            Assert(under_way <= self.most),
            Assert(~dut.output.valid | (under_way != 0)),
            Assert(~dut.output.valid | (dut.output.payload == expected)),
            Assert(unseen <= self.wait),
            Assert(no_room <= self.wait),
        ]
        return m


def searched(folder, board, script, flaw=""):
    """What ABC's ``script`` says about all assertions together. The clocks are inputs that change
    at any time, together or not."""
    m = Module()
    m.submodules.board = board
    domains = [named_domain(name) for name in CLOCK_PORTS]
    for domain in domains:
        m.domains += domain
    ports = [board.offers, board.accepts, board.mark, *(domain.clk for domain in domains)]
    (folder / "crossing.il").write_text(
        rtlil.convert(m, "top", Synchronisers(flaw), ports=ports, emit_src=False)
    )
    run_yosys(
        [
            "read_rtlil crossing.il",
            "hierarchy -top top",
            "proc",
            "flatten",
            "memory_map",
            "clk2fflogic",
            "chformal -lower",
            "opt -full",
            "techmap",
            "opt -fast",
            "abc -g AND",
            "opt_clean",
            "write_aiger -zinit goal.aig",
        ],
        purpose="proof",
        folder=folder,
    )
    return run_abc(folder, f"read_aiger goal.aig; orpos; scorr; {script}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "target"), [(ENGINE_DOMAIN, MEMORY_DOMAIN), (MEMORY_DOMAIN, ENGINE_DOMAIN)]
)
def test_proof_that_nothing_is_lost_repeated_or_reordered(tmp_path, source, target):
    said = searched(tmp_path, Scoreboard(source, target), "pdr -T 500")
    assert "Property proved" in said


def test_nothing_is_lost_repeated_or_reordered_within_steps(tmp_path):
    said = searched(tmp_path, Scoreboard(ENGINE_DOMAIN, MEMORY_DOMAIN), f"bmc3 -F {STEPS} -T 60")
    assert f"No output asserted in {STEPS} frames" in said


@pytest.mark.parametrize(
    ("bounds", "flaw"), [({"most": DEPTH - 1}, ""), ({"wait": MOST_WAIT - 1}, ""), ({}, "pointer")]
)
def test_the_search_finds_what_is_wrong(tmp_path, bounds, flaw):
    board = Scoreboard(ENGINE_DOMAIN, MEMORY_DOMAIN, **bounds)
    assert "was asserted" in searched(tmp_path, board, f"bmc3 -F {STEPS} -T 60", flaw)


#: Periods in ps of the source's clock and the target's.
PERIODS = [(800, 100), (800, 388), (800, 800), (801, 800), (970, 2000), (100, 800)]


async def held_for(ctx, domain, cycles):
    """Waits in reset, in which ``ctx.tick().repeat()`` and ``until()`` raise."""
    for _ in range(cycles):
        await ctx.tick(domain)


def moved(words, depth, periods, *, phase=0, released=(20, 20), busy=(), rng=None):
    """Words that pass when ``words`` are given from the first cycle after the source's reset on,
    and the source's and the target's cycles from the first offer to the last word.

    Parameters:
        released: cycles of each reset, by its own clock. busy: chances that the source does not
            offer, and the target not take.
    """
    source, target = ENGINE_DOMAIN, MEMORY_DOMAIN
    dut = StreamCrossing(shape=8, depth=depth, source=source, target=target)
    m = Module()
    m.submodules.dut = with_checks(dut)
    m.domains += [ClockDomain(source), ClockDomain(target)]
    resets = [ResetSignal(source), ResetSignal(target)]
    held = [Signal(init=1, name=f"held_{n}") for n in range(2)]
    m.d.comb += [reset.eq(value) for reset, value in zip(resets, held, strict=True)]
    offer_chance, take_chance = (1 - chance for chance in busy or (0, 0))
    found, cycles = [], [0, 0]

    async def gives(ctx):
        await held_for(ctx, source, released[0])
        ctx.set(held[0], 0)
        for word in words:
            while busy and rng.random() > offer_chance:
                await ctx.tick(source)
            ctx.set(dut.input.payload, word)
            ctx.set(dut.input.valid, 1)
            taken = False
            while not taken:
                _, _, taken = await ctx.tick(source).sample(dut.input.ready)
                cycles[0] += 1
            ctx.set(dut.input.valid, 0)

    async def takes(ctx):
        # Ready even in reset, as a unit seems whose registers are held.
        ctx.set(dut.output.ready, 1)
        await held_for(ctx, target, released[1])
        ctx.set(held[1], 0)
        while len(found) < len(words):
            ctx.set(dut.output.ready, not busy or rng.random() < take_chance)
            _, _, valid, ready, word = await ctx.tick(target).sample(
                dut.output.valid, dut.output.ready, dut.output.payload
            )
            if found or valid:
                cycles[1] += 1
            if valid and ready:
                found.append(word)

    simulator = Simulator(m)
    for domain, period in zip((source, target), periods, strict=True):
        shift = phase if domain == target else 0
        simulator.add_clock(period * 1e-12, phase=shift * 1e-12, domain=domain)
    simulator.add_testbench(gives)
    simulator.add_testbench(takes)
    simulator.run()
    return found, cycles


@pytest.mark.parametrize("periods", PERIODS)
def test_words_pass_in_order_with_gaps_on_both_sides(rng, periods):
    words = [rng.getrandbits(8) for _ in range(80)]
    for depth in (4, 16):
        found, _ = moved(words, depth, periods, phase=37, busy=(0.3, 0.4), rng=rng)
        assert found == words


@pytest.mark.parametrize("periods", [(800, 100), (800, 800), (100, 800)])
@pytest.mark.parametrize("released", [(20, 200), (200, 20), (20, 20)])
def test_no_word_is_lost_whichever_reset_ends_first(rng, periods, released):
    words = [rng.getrandbits(8) for _ in range(20)]
    found, _ = moved(words, 8, periods, phase=11, released=released)
    assert found == words


def after_a_reset(before, words, periods, phase):
    """Words that pass when ``words`` are given as soon as a reset ends, before which ``before``
    passed. None is taken for a while."""
    source, target = ENGINE_DOMAIN, MEMORY_DOMAIN
    dut = StreamCrossing(shape=8, depth=DEPTH, source=source, target=target)
    m = Module()
    m.submodules.dut = with_checks(dut)
    m.domains += [ClockDomain(source), ClockDomain(target)]
    reset = Signal()
    m.d.comb += [ResetSignal(domain).eq(reset) for domain in (source, target)]
    slower = source if periods[0] > periods[1] else target
    found = []

    async def gives(ctx):
        for number in range(before + len(words)):
            if number == before:
                ctx.set(dut.input.valid, 0)
                await ctx.delay(40e-12 * max(periods))
                ctx.set(reset, 1)
                await held_for(ctx, slower, RESET_CYCLES)
                found.clear()
                ctx.set(reset, 0)
            ctx.set(dut.input.payload, words[number - before] if number >= before else 255)
            ctx.set(dut.input.valid, 1)
            taken = False
            while not taken:
                _, _, taken = await ctx.tick(source).sample(dut.input.ready)
        ctx.set(dut.input.valid, 0)

    async def takes(ctx):
        ctx.set(dut.output.ready, 1)
        while len(found) < before:
            _, _, valid, word = await ctx.tick(target).sample(dut.output.valid, dut.output.payload)
            if valid:
                found.append(word)
        ctx.set(dut.output.ready, 0)
        await ctx.delay(100e-12 * max(periods))
        await ctx.tick(target)
        ctx.set(dut.output.ready, 1)
        while len(found) < len(words):
            _, _, valid, word = await ctx.tick(target).sample(dut.output.valid, dut.output.payload)
            if valid:
                found.append(word)

    simulator = Simulator(m)
    simulator.add_clock(periods[0] * 1e-12, domain=source)
    simulator.add_clock(periods[1] * 1e-12, phase=phase * 1e-12, domain=target)
    simulator.add_testbench(gives)
    simulator.add_testbench(takes)
    simulator.run_until(400e-12 * max(periods))
    return found


@pytest.mark.parametrize("periods", [(100, 800), (400, 800), (800, 800), (800, 100)])
def test_a_reset_forgets_what_passed_before_it(periods):
    """Pointers of the words before it are on their way to the other side when it begins."""
    words = list(range(3 * DEPTH))
    for before in range(2 * DEPTH):
        for phase in (37, 411):
            assert after_a_reset(before, words, periods, phase) == words, before


@pytest.mark.parametrize("periods", PERIODS)
def test_a_word_passes_in_each_cycle_of_the_slower_clock(rng, periods):
    words = [rng.getrandbits(8) for _ in range(200)]
    _, (source, target) = moved(words, 8, periods, phase=37)
    slower = source if periods[0] > periods[1] else target
    assert slower <= len(words) + 8


@pytest.mark.parametrize("depth", [0, 2, 3, 12, 128, 8.0, True, "8"])
def test_depths_are_checked(depth):
    with pytest.raises(ConfigurationError, match="depth must be a power of two from 4 to 64"):
        StreamCrossing(shape=1, depth=depth, source=ENGINE_DOMAIN, target=MEMORY_DOMAIN)
