from pe.config import PeConfig
from pe.counters import FLUSH_CYCLES, Counters
from pe.interface import HistoryCounter, PeCounter

EVENTS = {
    HistoryCounter.HISTORY_PROBES: "probed",
    HistoryCounter.HISTORY_HITS: "copied",
    HistoryCounter.WORKSPACE_COLUMNS: "asked",
}


async def _clear(ctx, dut):
    ctx.set(dut.clear, 1)
    for _ in range(len(PeCounter)):
        await ctx.tick()
    ctx.set(dut.clear, 0)


async def _values(ctx, dut):
    values = {}
    for counter in PeCounter:
        ctx.set(dut.index, counter)
        await ctx.tick()
        values[counter] = ctx.get(dut.value)
    return values


def test_every_event_is_counted_once(simulate, rng):
    config = PeConfig()
    dut = Counters(config)

    async def bench(ctx):
        for _ in range(2):
            ctx.set(dut.settle, 0)
            await _clear(ctx, dut)
            expected = dict.fromkeys(PeCounter, 0)
            # Runs of one event, and the largest transfers back to back, gather most.
            for _ in range(60):
                event = rng.choice(list(PeCounter)[1:13])
                for _ in range(rng.choice((1, 3, 40))):
                    count, busy = rng.random() < 0.8, rng.random() < 0.5
                    loaded = rng.choice((0, 1, config.scratchpad_bytes))
                    stored = rng.choice((0, 8, config.scratchpad_bytes))
                    ctx.set(dut.count, count)
                    ctx.set(dut.event, event)
                    ctx.set(dut.busy, busy)
                    ctx.set(dut.loaded, loaded)
                    ctx.set(dut.stored, stored)
                    expected[event] += count
                    expected[PeCounter.CYCLES] += count
                    expected[PeCounter.VECTOR_BUSY] += count and busy
                    expected[PeCounter.BYTES_LOADED] += loaded
                    expected[PeCounter.BYTES_STORED] += stored
                    await ctx.tick()
            for port in (dut.count, dut.loaded, dut.stored):
                ctx.set(port, 0)
            ctx.set(dut.settle, 1)
            for _ in range(FLUSH_CYCLES):
                await ctx.tick()
            assert await _values(ctx, dut) == expected

    simulate(dut, bench)


def test_without_counters_every_value_is_zero(simulate):
    dut = Counters(PeConfig(counters=False))

    async def bench(ctx):
        ctx.set(dut.count, 1)
        ctx.set(dut.event, PeCounter.STALL_FETCH)
        await ctx.delay(1e-9)
        for counter in PeCounter:
            ctx.set(dut.index, counter)
            await ctx.delay(1e-9)
            assert ctx.get(dut.value) == 0

    simulate(dut, bench, combinational=True)


def test_events_of_a_load_history_are_counted(simulate, rng):
    config = PeConfig(instructions=PeConfig().instructions | {"set.ws"}, load_history=8)
    dut = Counters(config)

    async def bench(ctx):
        await _clear(ctx, dut)
        expected = dict.fromkeys(EVENTS, 0)
        for _ in range(100):
            for counter, event in EVENTS.items():
                happens = rng.random() < 0.3
                ctx.set(getattr(dut, event), happens)
                expected[counter] += happens
            await ctx.tick()
        for event in EVENTS.values():
            ctx.set(getattr(dut, event), 0)
        for _ in range(FLUSH_CYCLES):
            await ctx.tick()
        for counter, count in expected.items():
            ctx.set(dut.index, counter)
            await ctx.tick()
            assert ctx.get(dut.value) == count

    simulate(dut, bench)


def test_relaunch_starts_from_zero_at_every_phase(simulate):
    """Sixteen cycles of clearing, as a small engine has, whatever counter's turn it is."""
    dut = Counters(PeConfig())

    async def bench(ctx):
        ctx.set(dut.settle, 1)
        for phase in range(2 * len(PeCounter)):
            ctx.set(dut.stored, 100)
            await ctx.tick()
            ctx.set(dut.stored, 0)
            for _ in range(FLUSH_CYCLES + phase):
                await ctx.tick()
            await _clear(ctx, dut)
            for _ in range(FLUSH_CYCLES):
                await ctx.tick()
            assert not any((await _values(ctx, dut)).values()), phase

    simulate(dut, bench)
